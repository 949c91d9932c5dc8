#include "transport/client.hpp"

#include <gtest/gtest.h>

namespace fairlead::transport {
namespace {

TEST(Cookie, ComesBackAsItWasGiven) {
  constexpr std::uint32_t kPlaces[] = {0, 1, Cookie::kPlaceEnd - 1};
  for (const Client client : {Client::messages, Client::active, Client::queue_pairs}) {
    for (const std::uint32_t place : kPlaces) {
      for (const bool is_copied : {false, true}) {
        if (is_copied && client != Client::queue_pairs) continue;
        const Cookie cookie{client, is_copied, place, ~0U - place};
        EXPECT_EQ(Cookie::of(cookie.word()), cookie);
      }
    }
  }
}

TEST(Client, EachOperationHasOneAndWhatIsNoneIsRefusedByMessages) {
  EXPECT_EQ(client_of(wire::Operation::given_back), Client::messages);
  EXPECT_EQ(client_of(wire::Operation::pair_send), Client::queue_pairs);
  EXPECT_EQ(client_of(wire::Operation::pair_datagram), Client::queue_pairs);
  EXPECT_EQ(client_of(wire::Operation::carried_out), Client::messages);
  EXPECT_EQ(client_of(wire::Operation::active_request), Client::active);
  EXPECT_EQ(client_of(wire::Operation::active_rejected), Client::active);
  EXPECT_EQ(client_of(static_cast<wire::Operation>(200)), Client::messages);
}

}  // namespace
}  // namespace fairlead::transport
