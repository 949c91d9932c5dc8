// The far side of a measurement of messages and puts.
#include <algorithm>
#include <deque>
#include <nlohmann/json.hpp>
#include <optional>
#include <unordered_map>

#include "tools/perf/far_end.hpp"
#include "tools/perf/node.hpp"
#include "tools/perf/stamp.hpp"

namespace fairlead::tools {
namespace {

constexpr std::size_t kEchoBuffers = 32;

/// Says that the role begins. Polls, and calls `after` each time, until the control is readable.
template <typename After>
void play(PerfNode& node, PerfControl& control, After after) {
  if (!control.send(perf_message_ready())) return;
  serve_until_told(control, [&] {
    node.poll();
    after();
  });
}

std::span<std::byte> bytes_of(const net::BufferEvent& event) {
  return event.buffer.segment(0).subspan(event.offset, event.length);
}

/// Idle send buffers.
struct SendStock {
  PerfBuffers all;
  std::vector<net::Buffer*> idle;

  Result<> fill(PerfNode& node, std::size_t count, std::uint64_t size, std::uint64_t& failures) {
    auto made = node.make_buffers(count, size, [this, &failures](const net::BufferEvent& event) {
      failures += event.status == Status::ok || event.status == Status::canceled ? 0 : 1;
      idle.push_back(&event.buffer);
    });
    if (!made) return std::unexpected(std::move(made.error()));
    all = std::move(*made);
    for (const auto& buffer : all) idle.push_back(buffer.get());
    return {};
  }
};

Result<PerfOutcome> play_echo(PerfNode& node, const PerfCommand& command, PerfControl& control) {
  PerfOutcome outcome;
  SendStock stock;
  if (auto filled = stock.fill(node, kEchoBuffers, command.size, outcome.failures); !filled) {
    return std::unexpected(std::move(filled.error()));
  }
  auto receive = node.take_messages(command.size, [&](const net::BufferEvent& event) {
    ++outcome.messages;
    if (stock.idle.empty() || event.length > command.size) {
      ++outcome.failures;
      return;
    }
    net::Buffer& buffer = *stock.idle.back();
    if (command.is_checked) std::ranges::copy(bytes_of(event), buffer.segment(0).begin());
    if (node.machine().add(buffer,
                           net::MessageSend{.to = event.sender, .length = event.length, .is_loan = command.is_loan}) ==
        Status::ok) {
      stock.idle.pop_back();
    } else {
      ++outcome.failures;
    }
  });
  if (!receive) return std::unexpected(std::move(receive.error()));
  play(node, control, [] {});
  node.drain(*receive);
  node.drain(stock.all);
  return outcome;
}

// A send ends when the peer's engine has the message, whether or not our buffers are free. So we report how many
// messages we have taken.
Result<PerfOutcome> play_take(PerfNode& node, const net::EndPoint& near, const PerfCommand& command,
                              PerfControl& control) {
  PerfOutcome outcome;
  SendStock stock;
  if (auto filled = stock.fill(node, kEchoBuffers, sizeof outcome.messages, outcome.failures); !filled) {
    return std::unexpected(std::move(filled.error()));
  }
  auto receive = node.take_messages(command.size, [&outcome](const net::BufferEvent& event) {
    ++outcome.messages;
    outcome.bytes += event.length;
  });
  if (!receive) return std::unexpected(std::move(receive.error()));
  const std::uint64_t step = std::max<std::uint64_t>(PerfNode::room_for(command.size) / 4, 1);
  std::uint64_t told = 0;
  play(node, control, [&] {
    if (outcome.messages < told + step || stock.idle.empty()) return;
    net::Buffer& message = *stock.idle.back();
    message.write(0, std::as_bytes(std::span(&outcome.messages, 1)));
    if (node.machine().add(message, net::MessageSend{.to = near}) != Status::ok) return;
    stock.idle.pop_back();
    told = outcome.messages;
  });
  node.drain(*receive);
  node.drain(stock.all);
  return outcome;
}

Result<PerfOutcome> play_take_put(PerfNode& node, const net::EndPoint& near, const PerfCommand& command,
                                  PerfControl& control) {
  PerfOutcome outcome;
  SendStock stock;
  if (auto filled = stock.fill(node, kEchoBuffers, kDescriptorsPerMessage * net::kDescriptorSize, outcome.failures);
      !filled) {
    return std::unexpected(std::move(filled.error()));
  }
  std::deque<net::Buffer*> fresh;  // exposed; descriptor not sent yet
  // A buffer is filled once per exposure, so the numbers in it grow.
  std::unordered_map<const net::Buffer*, std::uint64_t> numbers;
  const auto check = [&](const net::BufferEvent& event) {
    const auto number = read_stamps(bytes_of(event));
    std::uint64_t& last = numbers[&event.buffer];
    if (!number || *number <= last) ++outcome.corrupt;
    last = number.value_or(last);
  };
  const auto expose = [&](net::Buffer& buffer) {
    if (node.machine().add(buffer, net::PassiveReceive{}) == Status::ok) {
      fresh.push_back(&buffer);
    } else {
      ++outcome.failures;
    }
  };
  auto targets = node.make_buffers(command.in_flight, command.size, [&](const net::BufferEvent& event) {
    if (event.status == Status::canceled) return;
    if (event.status == Status::ok) {
      ++outcome.messages;
      outcome.bytes += event.length;
      if (command.is_checked) check(event);
    } else {
      ++outcome.failures;
    }
    expose(event.buffer);
  });
  if (!targets) return std::unexpected(std::move(targets.error()));
  for (const auto& buffer : *targets) expose(*buffer);
  play(node, control, [&] {
    while (!fresh.empty() && !stock.idle.empty()) {
      net::Buffer& message = *stock.idle.back();
      const std::size_t count = std::min(fresh.size(), kDescriptorsPerMessage);
      for (std::size_t i = 0; i < count; ++i) message.write(i * net::kDescriptorSize, fresh[i]->descriptor());
      if (node.machine().add(message, net::MessageSend{.to = near, .length = count * net::kDescriptorSize}) !=
          Status::ok)
        return;
      stock.idle.pop_back();
      fresh.erase(fresh.begin(), fresh.begin() + static_cast<std::ptrdiff_t>(count));
    }
  });
  fresh.clear();
  node.drain(*targets);
  node.drain(stock.all);
  return outcome;
}

class FarMessages : public PerfFarEnd {
 public:
  explicit FarMessages(std::unique_ptr<PerfNode> node) : node_(std::move(node)) {}

  std::string at() const override { return node_->address(); }

  Result<> meet(std::string_view near) override {
    auto end_point = node_->machine().create_end_point(near);
    if (!end_point) return std::unexpected(std::move(end_point.error()));
    near_.emplace(std::move(*end_point));
    return {};
  }

  Result<PerfOutcome> play(const PerfCommand& command, PerfControl& control) override {
    const std::uint64_t dropped = node_->machine().messages_dropped();
    auto outcome = command.role == PerfRole::echo   ? play_echo(*node_, command, control)
                   : command.role == PerfRole::take ? play_take(*node_, *near_, command, control)
                                                    : play_take_put(*node_, *near_, command, control);
    if (outcome) outcome->dropped = node_->machine().messages_dropped() - dropped;
    return outcome;
  }

 private:
  std::unique_ptr<PerfNode> node_;
  std::optional<net::EndPoint> near_;
};

}  // namespace

Result<std::unique_ptr<PerfFarEnd>> open_far_messages(const PerfPlace& place) {
  auto node = PerfNode::open(place);
  if (!node) return std::unexpected(std::move(node.error()));
  return std::make_unique<FarMessages>(std::move(*node));
}

}  // namespace fairlead::tools
