// 20,000 messages to a program that sometimes sleeps. Meanwhile the engine takes buffers from the pool, so no message
// is dropped.

#include <fairlead/net.hpp>

#include <atomic>
#include <chrono>
#include <iostream>
#include <latch>
#include <memory>
#include <thread>
#include <vector>

using namespace fairlead::net;

int main() {
  constexpr int kMessages = 20'000, kAtOnce = 32, kLength = 100, kInEach = 64;
  Domain domain = value_or_exit(Domain::open());
  BufferPool pool = value_or_exit(BufferPool::create(domain, {.buffer_size = kInEach * kLength}));
  value_or_exit(pool.provision(kMessages / kInEach + 3));  // room for all messages at once

  int received = 0;
  std::latch all_received(1), all_sent(kAtOnce);
  const auto take = [&](const BufferEvent& event) {
    if (event.status != fairlead::Status::ok) return;  // canceled: the machine stops; the buffer is in the pool
    if (++received % 1000 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(10));
    if (event.is_final) pool.put(event.buffer);
    if (received == kMessages) all_received.count_down();
  };
  TransferMachine server(domain), client(domain);
  value_or_exit(server.attach(pool, {.on_event = take, .size_min = kLength, .messages_max = kInEach}));
  const EndPoint own = value_or_exit(server.start_and_wait("127.0.0.1@udp:*:34:1"));
  value_or_exit(client.start_and_wait("127.0.0.1@udp:*:34:*"));
  const EndPoint there = value_or_exit(client.create_end_point(own.address()));

  std::atomic<int> left = kMessages;
  const auto send_next = [&](Buffer& buffer) {
    if (left-- <= 0) return all_sent.count_down();
    if (client.add(buffer, MessageSend{.to = there}) != fairlead::Status::ok)
      fairlead::exit_with(client.explain_last());
  };
  std::vector<std::unique_ptr<Buffer>> outboxes;
  for (int i = 0; i < kAtOnce; ++i) {
    outboxes.push_back(value_or_exit(Buffer::allocate(domain, kLength)));
    outboxes.back()->set_callback([&](const BufferEvent& event) { send_next(event.buffer); });
    send_next(*outboxes.back());
  }
  all_received.wait();
  all_sent.wait();
  std::cout << received << " messages received, " << server.messages_dropped() << " dropped, " << pool.free_count()
            << " of " << pool.size() << " buffers in the pool\n";
}
