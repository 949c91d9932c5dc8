// An echo server and a client, as coroutines of Boost.Asio on one thread.

#include <fairlead/net.hpp>
#include <fairlead/net/asio.hpp>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <iostream>

using namespace fairlead::net;
using boost::asio::awaitable;
using boost::asio::use_awaitable;

awaitable<void> serve(TransferMachine& machine, AsioBuffer& buffer) {
  for (;;) {
    const Outcome got = co_await buffer.async_add(machine, MessageReceive{}, use_awaitable);
    if (got.status != fairlead::Status::ok) co_return;  // canceled
    co_await buffer.async_add(machine, MessageSend{.to = got.sender, .length = got.length}, use_awaitable);
  }
}

awaitable<void> hear(TransferMachine& machine, AsioBuffer& buffer, boost::asio::io_context& context) {
  const Outcome got = co_await buffer.async_add(machine, MessageReceive{}, use_awaitable);
  const auto bytes = buffer->bytes(got.offset, got.length);
  std::cout << got.sender.address() << " answers ";
  std::cout.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size())) << '\n';
  context.stop();
}

awaitable<void> ask(TransferMachine& machine, AsioBuffer& buffer, EndPoint there) {
  buffer->write(0, std::as_bytes(std::span("hello", 5)));
  const Outcome sent = co_await buffer.async_add(machine, MessageSend{.to = there, .length = 5}, use_awaitable);
  std::cout << "asked: " << to_string(sent.status) << '\n';
}

int main() {
  boost::asio::io_context context;
  Domain domain = value_or_exit(Domain::open());
  AsioBuffer echo(value_or_exit(Buffer::allocate(domain, 4096))), inbox(value_or_exit(Buffer::allocate(domain, 4096))),
      outbox(value_or_exit(Buffer::allocate(domain, 4096)));
  TransferMachine server(domain), client(domain);
  for (TransferMachine* const machine : {&server, &client}) value_or_exit(machine->deliver_synchronously());
  const EndPoint own = value_or_exit(server.start_and_wait("127.0.0.1@udp:*:34:1"));
  value_or_exit(client.start_and_wait("127.0.0.1@udp:*:34:*"));

  AsioDelivery of_server(context, server), of_client(context, client);
  co_spawn(context, serve(server, echo), boost::asio::detached);
  co_spawn(context, hear(client, inbox, context), boost::asio::detached);
  co_spawn(context, ask(client, outbox, value_or_exit(client.create_end_point(own.address()))), boost::asio::detached);
  context.run();
}
