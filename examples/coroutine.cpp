// An echo server and a client, as coroutines on one thread.

#include <fairlead/net.hpp>
#include <fairlead/net/coroutine.hpp>

#include <array>
#include <iostream>

using namespace fairlead::net;

Background serve(TransferMachine& machine, AwaitedBuffer& buffer) {
  for (;;) {
    const Outcome got = co_await buffer.add(machine, MessageReceive{});
    if (got.status != fairlead::Status::ok) co_return;  // canceled: the machine stops
    co_await buffer.add(machine, MessageSend{.to = got.sender, .length = got.length});
  }
}

Background hear(TransferMachine& machine, AwaitedBuffer& buffer, bool& has_heard) {
  const Outcome got = co_await buffer.add(machine, MessageReceive{});
  const auto bytes = buffer->bytes(got.offset, got.length);
  std::cout << got.sender.address() << " answers ";
  std::cout.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size())) << '\n';
  has_heard = true;
}

Background ask(TransferMachine& machine, AwaitedBuffer& buffer, EndPoint there) {
  buffer->write(0, std::as_bytes(std::span("hello")));
  const Outcome sent = co_await buffer.add(machine, MessageSend{.to = there, .length = 5});
  std::cout << "asked: " << to_string(sent.status) << '\n';
}

int main() {
  Domain domain = value_or_exit(Domain::open());
  TransferMachine server(domain), client(domain);
  const std::array<TransferMachine*, 2> both{&server, &client};
  for (TransferMachine* const machine : both) value_or_exit(machine->deliver_synchronously());
  const EndPoint own = value_or_exit(server.start_and_wait("127.0.0.1@udp:*:34:1"));
  value_or_exit(client.start_and_wait("127.0.0.1@udp:*:34:*"));
  AwaitedBuffer echo(value_or_exit(Buffer::allocate(domain, 4096))),
      inbox(value_or_exit(Buffer::allocate(domain, 4096))), outbox(value_or_exit(Buffer::allocate(domain, 4096)));

  bool has_heard = false;
  serve(server, echo);
  hear(client, inbox, has_heard);
  ask(client, outbox, value_or_exit(client.create_end_point(own.address())));
  while (!has_heard)
    if (const auto which = TransferMachine::wait_any(both, fairlead::kNever)) both[*which]->deliver_all();
}
