#include "doors/rdma_cm/message.hpp"

#include <gtest/gtest.h>

#include <random>
#include <utility>
#include <vector>

namespace fairlead::rdma_cm {
namespace {

Message full(Kind kind) {
  Message message;
  message.kind = kind;
  message.reason = 28;
  message.port_space = 0x0106;
  message.qp_type = 2;
  message.source_port = 40000;
  message.target = {.family = Family::v4, .ip = *ip_of("10.0.0.7"), .port = 7471};
  message.from = 0x0123'4567'89ab'cdef;
  message.to = 0xfedc'ba98'7654'3210;
  message.psn = 0xabcdef;
  message.terms = {.qp_num = 0x123456,
                   .qkey = 0x01234567,
                   .responder_resources = 16,
                   .initiator_depth = 4,
                   .flow_control = 1,
                   .retry_count = 7,
                   .rnr_retry_count = 6,
                   .has_srq = 1};
  message.data.length = static_cast<std::uint8_t>(private_data_max(kind));
  for (std::size_t i = 0; i < message.data.length; ++i) message.data.bytes[i] = static_cast<std::uint8_t>(i * 7);
  return message;
}

std::vector<std::byte> bytes_of_message(const Message& message) {
  std::array<std::byte, kMessageSizeMax> bytes;
  const std::size_t length = encode(message, bytes);
  return {bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(length)};
}

std::string_view fault_of_bytes(const std::vector<std::byte>& bytes) {
  const auto message = decode(bytes);
  return message ? "" : message.error();
}

TEST(ManagerMessage, OfEachKindIsReadAsItWasWritten) {
  for (unsigned kind = 1; kind < kKinds; ++kind) {
    const Message message = full(static_cast<Kind>(kind));
    const auto read = decode(bytes_of_message(message));
    ASSERT_TRUE(read.has_value()) << kind << ": " << read.error();
    EXPECT_EQ(*read, message) << kind;
  }
}

TEST(ManagerMessage, ThatIsCutOffOrTooLongIsRefused) {
  std::vector<std::byte> bytes = bytes_of_message(full(Kind::req));
  for (std::size_t length = 0; length < bytes.size(); ++length)
    EXPECT_NE(fault_of_bytes({bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(length)}), "") << length;
  bytes.emplace_back();
  EXPECT_EQ(fault_of_bytes(bytes), "length");
}

TEST(ManagerMessage, WithAValueOutOfItsRangeIsRefusedByName) {
  struct {
    std::string_view fault;
    void (*spoil)(Message& message);
  } const rows[] = {
      {"number", [](Message& message) { message.terms.qp_num = 0x1000000; }},
      {"number", [](Message& message) { message.psn = 0x1000000; }},
      {"retries", [](Message& message) { message.terms.retry_count = 8; }},
      {"retries", [](Message& message) { message.terms.rnr_retry_count = 8; }},
      {"flag", [](Message& message) { message.terms.flow_control = 2; }},
      {"flag", [](Message& message) { message.terms.has_srq = 2; }},
      {"qp_type", [](Message& message) { message.qp_type = 11; }},
      {"family", [](Message& message) { message.target.family = static_cast<Family>(4); }},
      {"family", [](Message& message) { message.target.ip[0] = 1; }},
      {"from", [](Message& message) { message.from = 0; }},
      {"to", [](Message& message) { message.to = 0; }},
      {"kind", [](Message& message) { message.kind = static_cast<Kind>(0); }},
      {"private_data", [](Message& message) { message.data.length = 197; }},
  };
  for (const auto& row : rows) {
    Message message = full(Kind::rep);
    row.spoil(message);
    EXPECT_EQ(fault_of_bytes(bytes_of_message(message)), row.fault);
  }
}

TEST(ManagerMessage, OfAnotherVersionIsRefused) {
  std::vector<std::byte> bytes = bytes_of_message(full(Kind::rtu));
  bytes[1] = std::byte{2};
  EXPECT_EQ(fault_of_bytes(bytes), "version");
}

TEST(ManagerMessage, OfNoiseIsRefusedOrReadWholeAndInRange) {
  std::mt19937 random(20261123);
  const std::vector<std::byte> good = bytes_of_message(full(Kind::sidr_req));
  for (int i = 0; i < 20'000; ++i) {
    std::vector<std::byte> bytes = good;
    for (auto spoiled = random() % 6; spoiled > 0; --spoiled)
      bytes[random() % bytes.size()] = static_cast<std::byte>(random());
    bytes.resize(random() % 4 == 0 ? random() % (kMessageSizeMax + 8) : bytes.size());
    const auto message = decode(bytes);
    if (!message) continue;
    EXPECT_EQ(bytes_of_message(*message), bytes);  // decoding lost and invented nothing
    EXPECT_LE(message->data.length, private_data_max(message->kind));
  }
}

TEST(SocketName, IsReadAsItWasWrittenInEachFamily) {
  for (const SocketName& name : {SocketName{.family = Family::v4, .ip = *ip_of("192.0.2.9"), .port = 7471},
                                 SocketName{.family = Family::v6, .ip = *ip_of("fd00::9"), .port = 1},
                                 SocketName{.family = Family::gid, .ip = *ip_of("192.0.2.9"), .port = 65535}}) {
    std::array<std::byte, kNameSizeMax> bytes{};
    const std::size_t size = write_name(name, 0x0106, bytes);
    EXPECT_EQ(read_name(std::span(bytes).first(size)), name);
    EXPECT_EQ(read_name(std::span(bytes).first(size - 1)), std::nullopt);
  }
  EXPECT_EQ(read_name(std::array<std::byte, kNameSizeMax>{}), std::nullopt);
}

TEST(SocketName, KnowsWhatIsLocal) {
  EXPECT_TRUE(is_loopback(*ip_of("127.0.1.1")) && is_loopback(*ip_of("::1")));
  EXPECT_FALSE(is_loopback(*ip_of("128.0.0.1")) || is_loopback(*ip_of("::2")));
  EXPECT_TRUE(is_any(*ip_of("0.0.0.0")) && is_any(*ip_of("::")));
  EXPECT_EQ(to_text(*ip_of("10.0.0.7")), "10.0.0.7");
  EXPECT_EQ(ip_of("10.0.0"), std::nullopt);
}

}  // namespace
}  // namespace fairlead::rdma_cm
