// What compiles with typed handlers, and what does not.

#include <gtest/gtest.h>

#include <concepts>
#include <string>

#include <fairlead/am.hpp>

namespace fairlead::am {
namespace {

struct Point {
  double x, y;
};
void on_point(Token&, Point, int) {}
void on_bytes(Token&, std::span<std::byte>, std::uint64_t) {}
void on_other_point(Token&, Point, long) {}

constexpr auto kPoint = index_of<&on_point>(20);
constexpr auto kBytes = index_of<&on_bytes>(21);

template <typename Index, typename... Values>
concept Requests =
    requires(Endpoint& endpoint, Index index, Values... values) { endpoint.request(0, index, values...); };
template <typename Index, typename... Values>
concept RequestsMedium = requires(Endpoint& endpoint, Index index, Values... values) {
  endpoint.request_medium(0, index, std::span<const std::byte>(), values...);
};
template <typename Index, typename... Values>
concept RequestsLong = requires(Endpoint& endpoint, Index index, Values... values) {
  endpoint.request_long(0, 8, index, std::span<const std::byte>(), values...);
};
template <typename Index, typename... Values>
concept Replies = requires(Token& token, Index index, Values... values) { reply(token, index, values...); };
template <auto Function, typename Index>
concept Registers = requires(Endpoint& endpoint, Index index) { endpoint.set_typed<Function>(index); };

using PointIndex = std::remove_const_t<decltype(kPoint)>;
using BytesIndex = std::remove_const_t<decltype(kBytes)>;

static_assert(Requests<PointIndex, Point, int> && Replies<PointIndex, Point, int>);
static_assert(!Requests<PointIndex> && !Requests<PointIndex, Point>, "an argument is missing");
static_assert(!Requests<PointIndex, Point, int, int>, "one too many");
static_assert(!Requests<PointIndex, int, Point> && !Replies<PointIndex, int, Point>, "in the wrong order");
static_assert(!Requests<PointIndex, Point, std::string>, "of the wrong type");
static_assert(!RequestsMedium<PointIndex, Point, int> && !RequestsLong<PointIndex, Point, int>, "it takes no data");
static_assert(RequestsMedium<BytesIndex, std::uint64_t> && RequestsLong<BytesIndex, std::uint64_t>);
static_assert(!Requests<BytesIndex, std::uint64_t>, "it wants data");
static_assert(Registers<&on_point, PointIndex> && Registers<&on_bytes, BytesIndex>);
static_assert(!Registers<&on_other_point, PointIndex> && !Registers<&on_point, BytesIndex>, "another function's index");
static_assert(Typed<&on_point>::Its::kWords == 5 && Typed<&on_bytes>::Its::kWords == 2);

TEST(TypedHandlers, ValuesSurviveTheirWords) {
  const PackedArguments<Point, std::uint8_t, std::uint64_t> packed({1.5, -2}, 200, ~std::uint64_t{0});
  ASSERT_EQ(packed.words().size(), 7u);
  const auto [point, byte, number] =
      Signature<void (*)(Token&, Point, std::uint8_t, std::uint64_t)>::unpack(packed.words());
  EXPECT_EQ(point.x, 1.5);
  EXPECT_EQ(point.y, -2);
  EXPECT_EQ(byte, 200);
  EXPECT_EQ(number, ~std::uint64_t{0});
}

}  // namespace
}  // namespace fairlead::am
