// What must hold between any two calls. The simulator asks after each step.

#include "base/ensure.hpp"
#include "qp/flows.hpp"

namespace fairlead::qp {
namespace {

void check_requester(Flow& flow) {
  const std::uint32_t posted = flow.tail - flow.head;
  ENSURE(posted <= flow.plan.capacity.max_send_wr, "flow {}: {} requests in a queue of {}", flow.number, posted,
         flow.plan.capacity.max_send_wr);
  ENSURE(flow.next - flow.head <= posted && flow.begun - flow.head <= posted,
         "flow {}: head {}, next {}, begun {}, tail {}", flow.number, flow.head, flow.next, flow.begun, flow.tail);
  std::uint32_t flights = 0, reads = 0;
  for (std::uint32_t number = flow.head; number != flow.tail; ++number) {
    const SendEntry& entry = flow.entry(number);
    flights += entry.flights;
    reads += entry.is_read() && number - flow.head < flow.next - flow.head && !entry.is_done;
  }
  ENSURE(flights <= flow.flights, "flow {}: {} flights of its requests, {} of all", flow.number, flights, flow.flights);
  ENSURE(flow.reads_out <= posted && reads <= posted, "flow {}: {} reads are out, of {} requests", flow.number,
         flow.reads_out, posted);
}

}  // namespace

void Flows::check() {
  std::uint64_t held = 0;
  for (const std::unique_ptr<Flow>& flow : flows_) {
    if (!flow) continue;
    check_requester(*flow);
    std::uint64_t of_flow = 0;
    std::uint32_t arrivals = 0, previous = kNone;
    for (std::uint32_t at = flow->first_arrival; at != Waiting::kNone; at = arrivals_[at].next) {
      const Waiting& arrival = arrivals_[at];
      ENSURE(arrival.flow == flow->index && arrival.previous == previous, "flow {}: a broken chain of arrivals",
             flow->number);
      of_flow += arrival.bytes_held;
      previous = at;
      ++arrivals;
    }
    ENSURE(arrivals == flow->arrivals && of_flow <= flow->held_bytes,
           "flow {}: {} arrivals with {} bytes wait, {} with {} are known", flow->number, arrivals, of_flow,
           flow->arrivals, flow->held_bytes);
    held += flow->held_bytes;
  }
  ENSURE(held <= held_bytes_ && datagram_bytes_ <= held_bytes_, "flows hold {} bytes, {} of datagrams, {} in all", held,
         datagram_bytes_, held_bytes_);
  pools_.for_each([](std::uint32_t slot, const Pool& pool) {
    ENSURE(pool.count() <= pool.mask + 1, "pool {}: {} receives in {} places", slot, pool.count(), pool.mask + 1);
  });
}

}  // namespace fairlead::qp
