// A server with one thread per processor. Each thread has its own transfer machine and buffers. The machines deliver on
// the threads that own them, so no thread waits for a lock of another.

#include <fairlead/net.hpp>

#include <pthread.h>

#include <atomic>
#include <iostream>
#include <latch>
#include <memory>
#include <thread>
#include <vector>

using namespace fairlead::net;

constexpr unsigned kLocalities = 2;

void bind_to(unsigned cpu) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(cpu % std::thread::hardware_concurrency(), &set);
  pthread_setaffinity_np(pthread_self(), sizeof set, &set);  // without permission the thread runs on any processor
}

// Sends each message back, until `must_end`.
void serve(Domain& domain, unsigned number, std::latch& is_ready, const std::atomic<bool>& must_end) {
  bind_to(number);
  TransferMachine machine(domain);
  value_or_exit(machine.deliver_synchronously());
  value_or_exit(machine.start_and_wait("0@lo:20480:34:" + std::to_string(number + 1)));
  const auto buffer = value_or_exit(Buffer::allocate(domain, 4096));  // on the node of this thread
  const auto listen = [&](const BufferEvent& event) { (void)machine.add(event.buffer, MessageReceive{}); };
  (void)buffer->set_callback(QueueKind::message_send, listen);
  (void)buffer->set_callback(QueueKind::message_receive, [&](const BufferEvent& event) {
    if (event.status == fairlead::Status::ok)
      (void)machine.add(event.buffer, MessageSend{.to = event.sender, .length = event.length});
  });
  (void)machine.add(*buffer, MessageReceive{});
  is_ready.count_down();
  while (!must_end)
    if (machine.wait(fairlead::Instant::clock::now() + std::chrono::milliseconds(20)).value_or(false))
      (void)machine.deliver_all();
}

int main() {
  Domain domain = value_or_exit(Domain::open());
  std::latch is_ready(kLocalities);
  std::atomic<bool> must_end = false;
  std::vector<std::jthread> threads;
  threads.reserve(kLocalities);
  for (unsigned i = 0; i < kLocalities; ++i) threads.emplace_back([&, i] { serve(domain, i, is_ready, must_end); });
  is_ready.wait();

  TransferMachine client(domain);
  value_or_exit(client.deliver_synchronously());
  value_or_exit(client.start_and_wait("0@lo:20480:34:*"));
  unsigned answers = 0;
  const auto inbox = value_or_exit(Buffer::allocate(domain, 4096)),
             outbox = value_or_exit(Buffer::allocate(domain, 4096));
  (void)outbox->set_callback([](const BufferEvent&) {});
  (void)inbox->set_callback([&](const BufferEvent& event) {
    std::cout << event.sender.address() << " answers\n";
    ++answers;
  });
  for (unsigned i = 0; i < kLocalities; ++i) {
    const EndPoint there = value_or_exit(client.create_end_point("0@lo:20480:34:" + std::to_string(i + 1)));
    (void)client.add(*inbox, MessageReceive{});
    (void)client.add(*outbox, MessageSend{.to = there, .length = 8});
    while (answers <= i || outbox->is_queued())
      if (client.wait(fairlead::kNever)) (void)client.deliver_all();
  }
  must_end = true;
}
