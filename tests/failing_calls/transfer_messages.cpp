#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include <fairlead/net.hpp>

#include "tests/failing_calls/scenario.hpp"

namespace fairlead::tests {
namespace {

using namespace std::chrono_literals;

constexpr auto kTransferWithin = 5s;  // longer than the engine takes to give up the peer
constexpr std::uint64_t kTransferSize = 100'000;
using Address = std::array<char, 96>;

class TransferSide {
 public:
  TransferSide(net::Domain& domain, const Part& part) : part_(part), machine_(domain) {}

  Ending meet(net::Domain& domain) {
    if (const auto set = machine_.deliver_synchronously(); !set) return ended(set.error());
    const auto own = machine_.start_and_wait(part_.ip + "@udp:*:34:*");
    if (!own) return ended(own.error());
    Address mine{}, theirs{};
    std::ranges::copy(own->address(), mine.begin());
    if (!swap(part_, mine, theirs)) return other_is_gone();
    auto other = machine_.create_end_point(theirs.data());
    if (!other) return ended(other.error());
    other_ = *other;
    for (auto* buffer : {&inbox_, &outbox_}) {
      auto made = net::Buffer::allocate(domain, kTransferSize);
      if (!made) return ended(made.error());
      *buffer = std::move(*made);
      (*buffer)->set_callback([this](const net::BufferEvent& event) { events_.push_back(event.status); });
    }
    return {};
  }

  Ending exchange() {
    for (const std::uint64_t length : {8UL, 700UL, 9000UL, kTransferSize, 64UL}) {
      if (auto end = part_.is_first ? ask(length) : answer(length); !end.error.empty()) return end;
    }
    for (int round = 0; round < 3; ++round) {
      if (auto end = part_.is_first ? put() : take(); !end.error.empty()) return end;
    }
    return {};
  }

  Ending stop() {
    char end = 0;
    if (!swap(part_, end, end)) return other_is_gone();
    if (const auto stopped = machine_.stop_and_wait(net::StopMode::abort); !stopped) return ended(stopped.error());
    return {};
  }

 private:
  static Instant soon() { return Instant::clock::now() + kTransferWithin; }

  /// Waits for the next `count` operations to end.
  Ending wait_for(std::size_t count) {
    for (const Instant deadline = soon() + kTransferWithin; events_.size() < count;) {
      if (Instant::clock::now() > deadline) return {"hangs: an operation has not ended", true};
      if (is_other_gone(part_)) return other_is_gone();
      if (const auto waited = machine_.wait(Instant::clock::now() + 100ms); !waited) return ended(waited.error());
      if (const auto delivered = machine_.deliver_all(); !delivered) return ended(delivered.error());
    }
    const auto failed = std::ranges::find_if(events_, [](Status status) { return status != Status::ok; });
    const Ending end = failed == events_.end() ? Ending{} : ended(*failed);
    events_.clear();
    return end;
  }

  Ending ask(std::uint64_t length) {
    const auto mark = static_cast<std::byte>(length);
    std::ranges::fill(outbox_->segment(0).first(length), mark);
    if (const Status status = machine_.add(*inbox_, net::MessageReceive{.size_min = length, .deadline = soon()});
        status != Status::ok)
      return ended(status);
    char is_ready = 0;
    if (!hear(part_, &is_ready, 1)) return other_is_gone();
    if (const Status status =
            machine_.add(*outbox_, net::MessageSend{.to = other_, .length = length, .deadline = soon()});
        status != Status::ok)
      return ended(status);
    if (auto end = wait_for(2); !end.error.empty()) return end;
    const auto bytes = inbox_->segment(0).first(length);
    return std::ranges::all_of(bytes, [&](std::byte byte) { return byte == mark; }) ? Ending{} : Ending{"wrong bytes"};
  }
  Ending answer(std::uint64_t length) {
    if (const Status status = machine_.add(*inbox_, net::MessageReceive{.size_min = length, .deadline = soon()});
        status != Status::ok)
      return ended(status);
    if (!tell(part_, "r", 1)) return other_is_gone();
    if (auto end = wait_for(1); !end.error.empty()) return end;
    std::ranges::copy(inbox_->segment(0).first(length), outbox_->segment(0).begin());
    if (const Status status =
            machine_.add(*outbox_, net::MessageSend{.to = other_, .length = length, .deadline = soon()});
        status != Status::ok)
      return ended(status);
    return wait_for(1);
  }

  Ending put() {
    net::BufferDescriptor target;
    if (!hear(part_, &target, sizeof target)) return other_is_gone();
    std::ranges::fill(outbox_->segment(0), std::byte{0x5A});
    if (const Status status = machine_.add(*outbox_, net::ActiveSend{.descriptor = target, .deadline = soon()});
        status != Status::ok)
      return ended(status);
    return wait_for(1);
  }
  Ending take() {
    std::ranges::fill(inbox_->segment(0), std::byte{0});
    if (const Status status = machine_.add(*inbox_, net::PassiveReceive{.deadline = soon()}); status != Status::ok)
      return ended(status);
    const net::BufferDescriptor own = inbox_->descriptor();
    if (!tell(part_, &own, sizeof own)) return other_is_gone();
    if (auto end = wait_for(1); !end.error.empty()) return end;
    const auto bytes = inbox_->segment(0);
    return std::ranges::all_of(bytes, [](std::byte byte) { return byte == std::byte{0x5A}; }) ? Ending{}
                                                                                              : Ending{"wrong bytes"};
  }

  const Part& part_;
  net::TransferMachine machine_;
  net::EndPoint other_;
  std::unique_ptr<net::Buffer> inbox_, outbox_;
  std::vector<Status> events_;
};

}  // namespace

Ending transfer_messages(const Part& part) {
  auto domain =
      net::Domain::open({.engine = {{"path", part.path}, {"give_up_after", "1000"}, {"unreachable_after", "1000"}}});
  if (!domain) return ended(domain.error());
  TransferSide side(*domain, part);
  if (auto end = side.meet(*domain); !end.error.empty()) return end;
  if (auto end = side.exchange(); !end.error.empty()) return end;
  return side.stop();
}

}  // namespace fairlead::tests
