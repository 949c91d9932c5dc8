#include "qp/opcode_traits.hpp"

#include <gtest/gtest.h>

namespace fairlead::qp {
namespace {

using verbs::SendOpcode;

TEST(OpcodeTraits, TellEveryOpcodeApart) {
  for (std::uint8_t number = 0; number < kOpcodes.size(); ++number) {
    const auto opcode = static_cast<SendOpcode>(number);
    const OpcodeTraits& traits = traits_of(opcode);
    EXPECT_TRUE(is_opcode(opcode));
    EXPECT_EQ(traits.has_result(), opcode >= SendOpcode::read && opcode <= SendOpcode::fetch_add);
    EXPECT_EQ(traits.is_local(), opcode == SendOpcode::invalidate || opcode == SendOpcode::bind_window);
    EXPECT_EQ(traits.has_data(), has_data(traits.operation));
    EXPECT_EQ(traits.is_atomic(), opcode == SendOpcode::compare_swap || opcode == SendOpcode::fetch_add);
    EXPECT_EQ(traits.is_word(), traits.is_atomic() || opcode == SendOpcode::atomic_write);
    EXPECT_EQ(traits.has_imm, opcode == SendOpcode::write_imm || opcode == SendOpcode::send_imm);
    EXPECT_EQ(traits.right, right_for(traits.operation));
    EXPECT_EQ(traits.right == 0, traits.is_send() || traits.is_local());
    EXPECT_EQ(traits.is_one_sided(), traits.right != 0 && !traits.has_imm) << "else its program takes a receive";
  }
  EXPECT_FALSE(is_opcode(static_cast<SendOpcode>(kOpcodes.size())));
}

TEST(OpcodeTraits, KnowTheRightsOfRequests) {
  EXPECT_EQ(right_for(wire::Operation::pair_send), 0u);
  EXPECT_EQ(right_for(wire::Operation::pair_write), verbs::access::remote_write);
  EXPECT_EQ(right_for(wire::Operation::pair_read), verbs::access::remote_read);
  EXPECT_EQ(right_for(wire::Operation::pair_atomic), verbs::access::remote_atomic);
}

}  // namespace
}  // namespace fairlead::qp
