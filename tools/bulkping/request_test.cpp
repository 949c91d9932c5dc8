#include "tools/bulkping/request.hpp"

#include <gtest/gtest.h>

#include <random>

namespace fairlead::tools {
namespace {

Request example() {
  Request request{.kind = RequestKind::fetch,
                  .thread = 7,
                  .loop = 1'000'000,
                  .client = 0xfedc'ba98'7654'3210,
                  .size = 1 << 30,
                  .rest = {}};
  request.set_text("a descriptor");
  return request;
}

std::vector<std::byte> encoded(const Request& request) {
  std::vector<std::byte> bytes(kRequestBytesMax);
  bytes.resize(encode(request, bytes));
  return bytes;
}

TEST(BulkpingRequest, ComesBackAsItWent) {
  const Request request = example();
  const auto decoded = decode_request(encoded(request));
  ASSERT_TRUE(decoded) << decoded.error().message;
  EXPECT_EQ(decoded->kind, request.kind);
  EXPECT_EQ(decoded->thread, request.thread);
  EXPECT_EQ(decoded->loop, request.loop);
  EXPECT_EQ(decoded->client, request.client);
  EXPECT_EQ(decoded->size, request.size);
  EXPECT_EQ(decoded->rest, request.rest);
}

TEST(BulkpingRequest, AVerdictNamesWhatItAnswers) {
  const Request verdict = example().answer(Status::stale, "too late");
  const auto decoded = decode_request(encoded(verdict));
  ASSERT_TRUE(decoded);
  EXPECT_EQ(decoded->kind, RequestKind::verdict);
  EXPECT_EQ(decoded->about, RequestKind::fetch);
  EXPECT_EQ(decoded->status, Status::stale);
  EXPECT_EQ(decoded->loop, 1'000'000u);
  EXPECT_EQ(decoded->text(), "too late");
}

TEST(BulkpingRequest, DoesNotFitIntoLessThanItNeeds) {
  const Request request = example();
  std::vector<std::byte> bytes(kRequestHeaderBytes + request.rest.size());
  EXPECT_EQ(encode(request, bytes), bytes.size());
  EXPECT_EQ(encode(request, std::span(bytes).first(bytes.size() - 1)), 0u);
}

TEST(BulkpingRequest, AnyBytesAreARequestOrAnError) {
  const auto right = encoded(example());
  for (std::size_t size = 0; size < right.size(); ++size)
    EXPECT_FALSE(decode_request(std::span(right).first(size))) << size;
  std::mt19937_64 random{11};
  std::size_t accepted = 0;
  for (int i = 0; i < 100'000; ++i) {
    auto bytes = right;
    bytes[random() % bytes.size()] = static_cast<std::byte>(random());
    bytes.resize(bytes.size() - random() % 2);
    accepted += decode_request(bytes).has_value() ? 1 : 0;
  }
  EXPECT_GT(accepted, 0u);  // a change in the text, the numbers or the client yields another valid request
}

}  // namespace
}  // namespace fairlead::tools
