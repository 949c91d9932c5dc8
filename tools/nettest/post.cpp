#include "tools/nettest/post.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "tools/base/describe_failure.hpp"
#include "tools/base/now.hpp"

namespace fairlead::tools {

NettestPost::NettestPost(net::Domain& domain)
    : node_(domain, [this](const net::BufferEvent& event) { on_message(event); }) {}

Result<> NettestPost::start(std::string_view address) {
  auto outbox = net::Buffer::allocate(node_.domain(), kLetterBytesMax);
  if (!outbox) return std::unexpected(std::move(outbox.error()));
  outbox_ = std::move(*outbox);
  outbox_->set_callback([this](const net::BufferEvent& event) { sent_ = event.status; });
  return node_.start(address, {.message_size = kLetterBytesMax, .messages = kLettersMax}, Events::by_polling);
}

void NettestPost::on_message(const net::BufferEvent& event) {
  const std::span<const std::byte> bytes = event.buffer.bytes(event.offset, event.length);
  const auto* const text = reinterpret_cast<const char*>(bytes.data());
  auto body = nlohmann::json::parse(text, text + bytes.size(), nullptr, false);
  if (body.is_object() && letters_.size() < kLettersMax) letters_.push_back({std::move(body), event.sender});
  node_.put(event.buffer);
}

void NettestPost::deliver(Instant until) {
  const auto delivered = node_.machine().deliver_all();
  if (!delivered || *delivered == 0) (void)node_.machine().wait(std::min(until, now() + kLook));
}

Result<> NettestPost::send(const net::EndPoint& to, const nlohmann::json& body) {
  const std::string text = body.dump();
  if (outbox_->write(0, std::as_bytes(std::span(text))) != text.size()) {
    return std::unexpected(Error{Status::message_size, 0,
                                 fmt::format("a command of {} bytes: {} are possible: fewer or shorter addresses?",
                                             text.size(), kLetterBytesMax)});
  }
  sent_.reset();
  const Instant deadline = now() + kSendAtMost;
  const Status added =
      node_.machine().add(*outbox_, net::MessageSend{.to = to, .length = text.size(), .deadline = deadline});
  if (added != Status::ok) sent_ = added;
  while (!sent_) deliver(deadline + kLook);
  if (*sent_ == Status::ok) return {};
  return std::unexpected(Error{*sent_, 0, describe_failure(node_.machine(), to, *sent_)});
}

std::optional<NettestPost::Letter> NettestPost::receive(Instant deadline) {
  while (letters_.empty() && now() < deadline) deliver(deadline);
  if (letters_.empty()) return std::nullopt;
  Letter letter = std::move(letters_.front());
  letters_.pop_front();
  return letter;
}

}  // namespace fairlead::tools
