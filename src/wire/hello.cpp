#include "wire/hello.hpp"

#include "wire/layout.hpp"
#include "wire/segment.hpp"

namespace fairlead::wire {

void encode(const Hello& hello, std::byte* to) {
  store(to, at<std::uint64_t>(kHelloFields, "epoch"), hello.epoch);
  store(to, at<std::uint64_t>(kHelloFields, "token"), hello.token);
  store(to, at<std::uint64_t>(kHelloFields, "window_bytes"), hello.window_bytes);
  store(to, at<std::uint32_t>(kHelloFields, "initial_sequence"), hello.initial_sequence.value);
  store(to, at<std::uint32_t>(kHelloFields, "datagram_size_max"), hello.datagram_size_max);
  store(to, at<std::uint32_t>(kHelloFields, "window_segments"), hello.window_segments);
  store(to, at<std::uint32_t>(kHelloFields, "reassembly_slots"), hello.reassembly_slots);
  store(to, at<std::uint32_t>(kHelloFields, "ack_after"), hello.ack_after.value);
  store(to, at<std::uint32_t>(kHelloFields, "slot"), hello.slot);
}

Hello read_hello(std::span<const std::byte> payload) {
  const std::byte* from = payload.data();
  Hello hello;
  hello.epoch = load<std::uint64_t>(from, at<std::uint64_t>(kHelloFields, "epoch"));
  hello.token = load<std::uint64_t>(from, at<std::uint64_t>(kHelloFields, "token"));
  hello.window_bytes = load<std::uint64_t>(from, at<std::uint64_t>(kHelloFields, "window_bytes"));
  hello.initial_sequence.value = load<std::uint32_t>(from, at<std::uint32_t>(kHelloFields, "initial_sequence"));
  hello.datagram_size_max = load<std::uint32_t>(from, at<std::uint32_t>(kHelloFields, "datagram_size_max"));
  hello.window_segments = load<std::uint32_t>(from, at<std::uint32_t>(kHelloFields, "window_segments"));
  hello.reassembly_slots = load<std::uint32_t>(from, at<std::uint32_t>(kHelloFields, "reassembly_slots"));
  hello.ack_after.value = load<std::uint32_t>(from, at<std::uint32_t>(kHelloFields, "ack_after"));
  hello.slot = load<std::uint32_t>(from, at<std::uint32_t>(kHelloFields, "slot"));
  return hello;
}

bool is_possible(const Hello& hello) {
  constexpr std::uint64_t kWindowBytesMost = std::uint64_t{1} << 40;
  constexpr std::uint32_t kWindowSegmentsMost = 1U << 16;
  constexpr std::uint32_t kReassemblySlotsMost = 1U << 16;
  constexpr std::uint32_t kAckAfterMost = 1'000'000'000 / kTick;
  return hello.epoch != 0 && hello.token != 0 && hello.window_bytes >= kDatagramSizeLeast &&
         hello.window_bytes <= kWindowBytesMost && hello.datagram_size_max >= kDatagramSizeLeast &&
         hello.window_segments >= 1 && hello.window_segments <= kWindowSegmentsMost && hello.reassembly_slots >= 1 &&
         hello.reassembly_slots <= kReassemblySlotsMost && hello.ack_after.value <= kAckAfterMost &&
         hello.slot < wire::kSlotsMost;
}

void encode_retry(std::uint64_t cookie, std::byte* to) {
  store(to, at<std::uint64_t>(kRetryFields, "cookie"), cookie);
}

std::uint64_t read_retry(std::span<const std::byte> payload) {
  return load<std::uint64_t>(payload.data(), at<std::uint64_t>(kRetryFields, "cookie"));
}

void encode_refused(std::uint64_t reason, std::byte* to) {
  store(to, at<std::uint64_t>(kRefusedFields, "reason"), reason);
}

std::uint64_t read_refused(std::span<const std::byte> payload) {
  return load<std::uint64_t>(payload.data(), at<std::uint64_t>(kRefusedFields, "reason"));
}

void encode(const ReturnAddress& address, std::byte* to) {
  store(to, at<std::uint64_t>(kSealedHelloFields, "token"), address.token);
  store(to, at<std::uint32_t>(kSealedHelloFields, "slot"), address.slot);
  store(to, at<std::uint32_t>(kSealedHelloFields, "reserved"), std::uint32_t{0});
}

ReturnAddress read_return_address(std::span<const std::byte> hello, bool is_sealed) {
  if (!is_sealed) {
    const Hello clear = read_hello(hello);
    return {.slot = clear.slot, .token = clear.token};
  }
  return {.slot = load<std::uint32_t>(hello.data(), at<std::uint32_t>(kSealedHelloFields, "slot")),
          .token = load<std::uint64_t>(hello.data(), at<std::uint64_t>(kSealedHelloFields, "token"))};
}

void encode(const SealedInner& inner, std::byte* to) {
  encode(inner.hello, to);
  store(to + kHelloBytes, at<std::uint64_t>(kSealedInnerFields, "session"), inner.session);
}

SealedInner read_sealed_inner(std::span<const std::byte> bytes) {
  return {.hello = read_hello(bytes),
          .session = load<std::uint64_t>(bytes.data() + kHelloBytes, at<std::uint64_t>(kSealedInnerFields, "session"))};
}

}  // namespace fairlead::wire
