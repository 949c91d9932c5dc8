// Cost of one message inside a host, without the transfer of cache lines between cores: two engines of one process use
// shared memory, and one thread drives them in turn. The figures repeat within a few percent, unlike those of two
// cores, and callgrind can count the same work:
//
//   valgrind --tool=callgrind --collect-atstart=no '--toggle-collect=*measured_*' BENCH --row net --messages 2000
//
// One message: submission, the receiver's event, and the sender's own event.

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <fairlead/am.hpp>
#include <fairlead/net.hpp>
#include <fairlead/verbs.hpp>

#include "bench/net_end.hpp"

namespace {

using namespace fairlead;

constexpr int kRuns = 9;
constexpr std::uint64_t kWarmUp = 2000;

using bench::give_up, bench::NetEnd, bench::take, bench::want;

// Messages of Net ---------------------------------------------------------------------------------------------------

struct NetPair {
  NetPair(std::size_t in_flight, std::uint64_t bytes)
      : size(bytes),
        near(domain, "127.0.0.1", in_flight, bytes),
        far(domain, "127.0.0.2", in_flight, bytes),
        to_far(take(near.machine.create_end_point(far.own.address()))),
        to_near(take(far.machine.create_end_point(near.own.address()))) {}

  std::uint64_t size;
  net::Domain domain = take(net::Domain::open({.engine = {{"path", "shm"}}}));
  NetEnd near, far;
  net::EndPoint to_far, to_near;
};

__attribute__((noinline)) void measured_net(NetPair& pair, std::uint64_t messages) {
  for (std::uint64_t i = 0; i < messages; i += 2) {
    pair.near.send(pair.to_far, pair.size);
    for (const std::uint64_t end = pair.far.received + 1; pair.far.received < end;) pair.far.machine.deliver_all();
    pair.far.send(pair.to_near, pair.size);
    for (const std::uint64_t end = pair.near.received + 1; pair.near.received < end;) pair.near.machine.deliver_all();
  }
}

__attribute__((noinline)) void measured_net_batch(NetPair& pair, std::uint64_t messages) {
  for (std::uint64_t sent = 0; sent < messages;) {
    std::vector<net::Buffer*>& idle = pair.near.idle;
    const auto added = pair.near.machine.add(idle, net::MessageSend{.to = pair.to_far, .length = pair.size});
    want(added.status, "send");
    idle.clear();
    sent += added.count;
    pair.far.machine.deliver_all();
    pair.near.machine.deliver_all();
  }
}

__attribute__((noinline)) void measured_net_stream(NetPair& pair, std::uint64_t messages) {
  for (std::uint64_t sent = 0; sent < messages;) {
    while (!pair.near.idle.empty() && sent < messages) {
      pair.near.send(pair.to_far, pair.size);
      ++sent;
    }
    pair.far.machine.deliver_all();
    pair.near.machine.deliver_all();
  }
}

// Active messages -------------------------------------------------------------------------------------------------

struct AmEnd {
  explicit AmEnd(const char* ip)
      : domain(take(am::Domain::open({.ip = ip, .engine = {{"path", "shm"}}}))),
        bundle(domain, am::BundleMode::sequential),
        endpoint(*take(bundle.add_endpoint())) {
    endpoint.set_tag(am::Tag::of(7));
    want(endpoint.set_handler(
             10, [](void* context, am::Token&, const am::Message&) { ++static_cast<AmEnd*>(context)->seen; }, this),
         "handler");
    want(endpoint.set_handler(
             11,
             [](void* context, am::Token& token, const am::Message& message) {
               ++static_cast<AmEnd*>(context)->seen;
               want(message.data.empty() ? token.reply(10, message.arguments)
                                         : token.reply_medium(10, message.data, message.arguments),
                    "reply");
             },
             this),
         "handler");
  }
  am::Domain domain;
  am::Bundle bundle;
  am::Endpoint& endpoint;
  std::uint64_t seen = 0;
};

struct AmPair {
  AmPair() : near("127.0.0.1"), far("127.0.0.2") {
    want(near.endpoint.map(0, far.endpoint.name(), 7), "map");
    want(far.endpoint.map(0, near.endpoint.name(), 7), "map");
  }
  AmEnd near, far;
  std::array<std::byte, 8> data{};
};

// A message is a request or its reply.
__attribute__((noinline)) void measured_am(AmPair& pair, std::uint64_t messages, bool is_medium) {
  const std::array<am::Argument, 2> arguments{1, 2};
  for (std::uint64_t i = 0; i < messages; i += 2) {
    want(is_medium ? pair.near.endpoint.request_medium(0, 11, pair.data, {})
                   : pair.near.endpoint.request(0, 11, arguments),
         "request");
    for (const std::uint64_t end = pair.near.seen + 1; pair.near.seen < end;) {
      pair.far.bundle.poll();
      pair.near.bundle.poll();
    }
  }
}

// Sends of a reliable connection ----------------------------------------------------------------------------------

struct VerbsEnd {
  static constexpr std::size_t kReceives = 64;

  explicit VerbsEnd(std::uint8_t host)
      : device{.name = "bench",
               .address = fmt::format("127.0.0.{}", host),
               .gid = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF, 127, 0, 0, host}},
        context(take(verbs::Context::open(device, {.engine = {{"path", "shm"}}}))),
        domain(take(verbs::ProtectionDomain::allocate(context))),
        sends(take(verbs::CompletionQueue::create(context, {.capacity = 256}))),
        receives(take(verbs::CompletionQueue::create(context, {.capacity = 256}))),
        memory(4096),
        region(take(verbs::MemoryRegion::add(
            domain,
            {.address = memory.data(), .length = memory.size(), .access = verbs::access::local_write, .iova = {}}))),
        pair(take(verbs::QueuePair::create(
            domain,
            {.type = verbs::QpType::rc,
             .send_queue = &sends,
             .receive_queue = &receives,
             .shared_receive = nullptr,
             .capacity = {.max_send_wr = 64, .max_recv_wr = kReceives, .max_send_sge = 1, .max_recv_sge = 1}}))) {}

  void connect(const VerbsEnd& to) {
    if (const auto connected = verbs::connect(pair, to.pair.address()); !connected) give_up(connected.error().message);
    for (std::size_t i = 0; i < kReceives / 2; ++i) receive();
  }
  void receive() {
    const verbs::Sge sge = region.sge(0, 64);
    const verbs::ReceiveRequest request{.id = 1, .sges = {&sge, 1}};
    if (pair.post_receive(request) != 0) give_up("a receive was refused");
  }
  void send() {
    const verbs::Sge sge = region.sge(64, 8);
    const verbs::SendRequest request{.id = 2, .sges = {&sge, 1}, .flags = verbs::send_flags::signaled};
    if (pair.post_send(request) != 0) give_up("a send was refused");
  }
  static bool take_one(verbs::CompletionQueue& queue) {
    verbs::WorkCompletion completion;
    if (queue.poll({&completion, 1}) == 0) return false;
    if (completion.status != verbs::WcStatus::success) give_up("a completion with an error");
    return true;
  }

  verbs::Device device;
  verbs::Context context;
  verbs::ProtectionDomain domain;
  verbs::CompletionQueue sends, receives;
  std::vector<std::byte> memory;
  verbs::MemoryRegion region;
  verbs::QueuePair pair;
};

struct VerbsPair {
  VerbsPair() {
    near.connect(far);
    far.connect(near);
  }
  VerbsEnd near{1}, far{2};
};

__attribute__((noinline)) void measured_verbs(VerbsPair& pair, std::uint64_t messages) {
  for (std::uint64_t i = 0; i < messages; i += 2) {
    const auto one_way = [](VerbsEnd& from, VerbsEnd& to) {
      to.receive();
      from.send();
      while (!VerbsEnd::take_one(to.receives)) {
      }
    };
    one_way(pair.near, pair.far);
    one_way(pair.far, pair.near);
    for (int left = 2; left > 0;) {
      left -= VerbsEnd::take_one(pair.near.sends) ? 1 : 0;
      left -= VerbsEnd::take_one(pair.far.sends) ? 1 : 0;
    }
  }
}

// -----------------------------------------------------------------------------------------------------------------

struct Row {
  std::string name;
  std::function<std::function<void(std::uint64_t)>()> make;
};

std::vector<Row> rows() {
  const auto net = [](auto measured, std::size_t in_flight, std::uint64_t size) {
    return [=] {
      return
          [=, pair = std::make_shared<NetPair>(in_flight, size)](std::uint64_t messages) { measured(*pair, messages); };
    };
  };
  const auto am = [](bool is_medium) {
    return [=] {
      return
          [=, pair = std::make_shared<AmPair>()](std::uint64_t messages) { measured_am(*pair, messages, is_medium); };
    };
  };
  return {{"net", net(measured_net, 4, 8)},
          {"net stream", net(measured_net_stream, 64, 8)},
          {"net batch", net(measured_net_batch, 64, 8)},
          {"net 4 KiB", net(measured_net, 4, 4096)},
          {"am short", am(false)},
          {"am medium", am(true)},
          {"verbs send", [] {
             return [pair = std::make_shared<VerbsPair>()](std::uint64_t messages) { measured_verbs(*pair, messages); };
           }}};
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("one message between two engines of this process through shared memory, on one thread");
  std::string only;
  std::uint64_t messages = 0;
  app.add_option("--row", only, "this row only");
  app.add_option("--messages", messages, "so many and no time: to be counted by callgrind");
  CLI11_PARSE(app, argc, argv);
  for (const Row& row : rows()) {
    if (!only.empty() && row.name != only) continue;
    const auto run = row.make();
    run(kWarmUp);
    if (messages > 0) {
      run(messages);
      continue;
    }
    constexpr std::uint64_t kMessages = 40'000;
    std::vector<double> times;
    for (int i = 0; i < kRuns; ++i) {
      const auto start = std::chrono::steady_clock::now();
      run(kMessages);
      const std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - start;
      times.push_back(took.count() / kMessages);
    }
    std::ranges::sort(times);
    fmt::print("{:<12} {:7.1f} ns a message (best {:.1f}, worst {:.1f})\n", row.name, times[kRuns / 2], times.front(),
               times.back());
  }
  return 0;
}
