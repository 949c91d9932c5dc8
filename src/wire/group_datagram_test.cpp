#include "wire/group_datagram.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "wire/pair_words.hpp"
#include "wire/segment.hpp"

namespace fairlead::wire {
namespace {

std::vector<std::byte> encoded(const GroupDatagram& datagram, std::size_t size) {
  std::vector<std::byte> whole(kGroupHeaderBytes + size, std::byte{0x3C});
  const iovec piece{whole.data() + kGroupHeaderBytes, size};
  encode_group(datagram, {&piece, 1}, static_cast<std::uint32_t>(size), whole.data());
  return whole;
}

const GroupDatagram kPlain{.flags = 0x4803,
                           .source_port = 0x12'3456,
                           .queue_key = 0x0123'4567,
                           .group = {0xFF, 0x0E, 1, 2, 3},
                           .imm = 99,
                           .bytes = {}};

TEST(GroupDatagram, ComesBackAsItWas) {
  for (const std::size_t size : {std::size_t{0}, std::size_t{1}, kGroupBytesMost}) {
    const auto whole = encoded(kPlain, size);
    const auto found = decode_group(whole);
    ASSERT_TRUE(found);
    EXPECT_EQ(found->flags, kPlain.flags);
    EXPECT_EQ(found->source_port, kPlain.source_port);
    EXPECT_EQ(found->queue_key, kPlain.queue_key);
    EXPECT_EQ(found->group, kPlain.group);
    EXPECT_EQ(found->imm, kPlain.imm);
    EXPECT_EQ(found->bytes.size(), size);
    EXPECT_EQ(decode(whole).error(), size < 8 ? DropReason::too_short : DropReason::wrong_kind) << "is no segment";
  }
}

TEST(GroupDatagram, HasAReasonForAllElse) {
  EXPECT_EQ(decode_group(std::vector<std::byte>(kGroupHeaderBytes - 1)).error(), DropReason::too_short);
  EXPECT_EQ(decode_group(encoded(kPlain, kGroupBytesMost + 1)).error(), DropReason::wrong_length);
  const auto changed = [](std::size_t at) {
    auto whole = encoded(kPlain, 100);
    whole[at] ^= std::byte{1};
    return decode_group(whole).error();
  };
  EXPECT_EQ(changed(0), DropReason::wrong_version);
  EXPECT_EQ(changed(1), DropReason::wrong_kind);
  EXPECT_EQ(changed(36), DropReason::wrong_length);
  EXPECT_EQ(changed(139), DropReason::wrong_checksum);
  GroupDatagram wrong = kPlain;
  wrong.flags = request_flags::acknowledges;
  EXPECT_EQ(decode_group(encoded(wrong, 4)).error(), DropReason::reserved_not_zero);
  wrong = kPlain;
  wrong.source_port = PairPort::kNumberMost + 1;
  EXPECT_EQ(decode_group(encoded(wrong, 4)).error(), DropReason::bad_record);
}

}  // namespace
}  // namespace fairlead::wire
