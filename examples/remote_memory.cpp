// One queue pair writes into the memory of another, counts in it, and reads it back; the other takes no part. Both ends
// are in this process to keep it short: in two, they would tell each other GID, number, key and address first.

#include <fairlead/verbs.hpp>

#include <array>
#include <cstdint>
#include <cstring>
#include <iostream>

using namespace fairlead::verbs;

namespace {

void connect(QueuePair& pair, const Gid& peer, std::uint32_t peer_number) {
  namespace mask = qp_mask;
  QpAttributes attributes{.state = QpState::init,
                          .path_mtu = Mtu::bytes_4096,
                          .dest_qp_num = peer_number,
                          .access_flags = access::remote_write | access::remote_read | access::remote_atomic,
                          .av = {.dgid = peer, .is_global = true},
                          .max_rd_atomic = 4,
                          .max_dest_rd_atomic = 4,
                          .port_num = 1,
                          .timeout = 14,
                          .retry_cnt = 7,
                          .rnr_retry = 7};
  value_or_exit(pair.modify(attributes, mask::state | mask::pkey_index | mask::port | mask::access_flags));
  attributes.state = QpState::rtr;
  value_or_exit(pair.modify(attributes, mask::state | mask::av | mask::path_mtu | mask::dest_qp_num | mask::rq_psn |
                                            mask::max_dest_rd_atomic | mask::min_rnr_timer));
  attributes.state = QpState::rts;
  value_or_exit(pair.modify(attributes, mask::state | mask::timeout | mask::retry_cnt | mask::rnr_retry | mask::sq_psn |
                                            mask::max_rd_atomic));
}

}  // namespace

int main() {
  const Device device = value_or_exit(devices()).back();
  Context context = value_or_exit(Context::open(device));
  auto domain = value_or_exit(ProtectionDomain::allocate(context));
  auto queue = value_or_exit(CompletionQueue::create(context, {.capacity = 16}));
  const QpOptions options{.send_queue = &queue, .receive_queue = &queue, .capacity = {.max_send_wr = 16}};
  auto near = value_or_exit(QueuePair::create(domain, options));
  auto far = value_or_exit(QueuePair::create(domain, options));
  connect(near, device.gid, far.number());
  connect(far, device.gid, near.number());

  alignas(8) std::array<char, 64> ours{"hello, far memory"}, theirs{};
  std::uint64_t& counter = *reinterpret_cast<std::uint64_t*>(theirs.data() + 32);
  auto our_region =
      value_or_exit(MemoryRegion::add(domain, {.address = ours.data(), .length = 64, .access = access::local_write}));
  auto their_region = value_or_exit(MemoryRegion::add(
      domain, {.address = theirs.data(),
               .length = 64,
               .access = access::local_write | access::remote_write | access::remote_read | access::remote_atomic}));
  const auto at = [](const char* address) { return reinterpret_cast<std::uintptr_t>(address); };
  const Sge text{at(ours.data()), 18, our_region.lkey()}, before{at(ours.data() + 32), 8, our_region.lkey()},
      back{at(ours.data() + 40), 18, our_region.lkey()};
  const std::array<SendRequest, 3> requests{{{.id = 1,
                                              .sges = {&text, 1},
                                              .opcode = SendOpcode::write,
                                              .flags = send_flags::signaled,
                                              .rkey = their_region.rkey(),
                                              .remote_addr = at(theirs.data())},
                                             {.id = 2,
                                              .sges = {&before, 1},
                                              .opcode = SendOpcode::fetch_add,
                                              .flags = send_flags::signaled,
                                              .rkey = their_region.rkey(),
                                              .remote_addr = at(theirs.data() + 32),
                                              .compare_add = 42},
                                             {.id = 3,
                                              .sges = {&back, 1},
                                              .opcode = SendOpcode::read,
                                              .flags = send_flags::signaled,
                                              .rkey = their_region.rkey(),
                                              .remote_addr = at(theirs.data())}}};
  std::size_t taken = 0;
  if (near.post_send(requests, taken) != 0) return 1;

  for (std::size_t done = 0; done < requests.size();) {
    std::array<WorkCompletion, 4> completions;
    const int count = queue.poll(completions);
    for (int i = 0; i < count; ++i, ++done) {
      const WorkCompletion& one = completions[static_cast<std::size_t>(i)];
      std::cout << "request " << one.wr_id << ": " << to_string(one.status) << '\n';
      if (one.status != WcStatus::success) std::cout << explain(static_cast<Cause>(one.vendor_err)) << '\n';
    }
    if (count < 0) return 1;
  }
  std::cout << "read back: " << ours.data() + 40 << "; the counter is " << counter << '\n';
  return std::strcmp(ours.data() + 40, "hello, far memory") == 0 && counter == 42 ? 0 : 1;
}
