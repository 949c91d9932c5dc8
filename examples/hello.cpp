#include <fairlead/net.hpp>

#include <iostream>
#include <latch>

using namespace fairlead::net;

int main() {
  Domain domain = value_or_exit(Domain::open());
  TransferMachine alice(domain), bob(domain);
  const EndPoint to_alice = value_or_exit(alice.start_and_wait("0@lo:20480:34:1"));  // 127.0.0.1@udp:... uses UDP
  value_or_exit(bob.start_and_wait("0@lo:20480:34:*"));                              // * selects a free number

  std::latch arrived(1);
  auto inbox = value_or_exit(Buffer::allocate(domain, 4096));
  inbox->set_callback(QueueKind::message_receive, [&](const BufferEvent& event) {
    const auto bytes = event.buffer.bytes(event.offset, event.length);
    std::cout << event.sender.address() << " says ";
    std::cout.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size())) << '\n';
    arrived.count_down();
  });
  if (alice.add(*inbox, MessageReceive{}) != fairlead::Status::ok) fairlead::exit_with(alice.explain_last());

  auto outbox = value_or_exit(Buffer::allocate(domain, 4096));
  outbox->set_callback(QueueKind::message_send, [](const BufferEvent&) {});
  outbox->write(0, std::as_bytes(std::span("hello, alice")));
  const EndPoint there = value_or_exit(bob.create_end_point(to_alice.address()));
  if (bob.add(*outbox, MessageSend{.to = there, .length = 12}) != fairlead::Status::ok)
    fairlead::exit_with(bob.explain_last());
  arrived.wait();
}
