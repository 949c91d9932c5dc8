#include "shm/cross_memory.hpp"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <vector>

namespace fairlead::shm {
namespace {

using Denial = CrossMemory::Denial;

std::uint64_t address_of(const void* at) {
  return reinterpret_cast<std::uintptr_t>(at);
}

/// Memory that the test and a sleeping child have at the same address.
class CrossMemoryTest : public testing::Test {
 protected:
  static constexpr std::size_t kPage = 4096, kPages = 16;

  // The child does not inherit our identity, which is wiped at fork, so it writes a copy of the nonce.
  void SetUp() override {
    void* const space = ::mmap(nullptr, kPages * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(space, MAP_FAILED);
    bytes_ = {static_cast<std::byte*>(space), kPages * kPage};
    std::memcpy(bytes_.data(), nonce_.data(), sizeof nonce_);
    bytes_[Identity::kRecordsAt] = std::byte{7};
    child_ = ::fork();
    if (child_ == 0) {
      for (;;) ::pause();
    }
    ASSERT_GT(child_, 0);
  }
  void TearDown() override {
    end_child();
    ::munmap(bytes_.data(), bytes_.size());
  }
  void end_child() {
    if (child_ > 0) ::kill(child_, SIGKILL), ::waitpid(child_, nullptr, 0);
    child_ = -1;
  }
  CrossMemory reach() const { return CrossMemory::probe(child_, address_of(bytes_.data()), nonce_); }

  Nonce nonce_{0x1234'5678, 0x9abc'def0};
  std::span<std::byte> bytes_;
  pid_t child_ = -1;
};

TEST_F(CrossMemoryTest, WhatIsWrittenThereIsReadThereInAnyPieces) {
  CrossMemory memory = reach();
  ASSERT_TRUE(memory.is_reached()) << CrossMemory::reason(memory.denial());
  std::byte record{};
  ASSERT_TRUE(memory.look(0, {&record, 1}));
  EXPECT_EQ(record, std::byte{7});
  std::vector<std::byte> out(5 * kPage), in(out.size() + 100);
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = static_cast<std::byte>(i * 7 >> 3);
  for (const std::size_t size : {std::size_t{1}, std::size_t{8}, std::size_t{9}, kPage, out.size()}) {
    for (const std::size_t at : {2 * kPage, 3 * kPage - 5, 4 * kPage + 3}) {
      for (const std::size_t pieces : {1, 3, 70}) {
        std::vector<iovec> from, to;
        for (std::size_t i = 0; i < pieces; ++i) {
          const std::size_t begin = size * i / pieces, end = size * (i + 1) / pieces;
          from.push_back({out.data() + begin, end - begin});
          to.push_back({in.data() + begin, end - begin});
        }
        to.push_back({in.data() + size, 100});  // more room than is read
        ASSERT_TRUE(memory.write(address_of(bytes_.data() + at), from, size));
        std::fill(in.begin(), in.end(), std::byte{0xFF});
        ASSERT_TRUE(memory.read(to, address_of(bytes_.data() + at), size));
        EXPECT_EQ(std::memcmp(in.data(), out.data(), size), 0);
        EXPECT_EQ(in[size], std::byte{0xFF});
        EXPECT_EQ(bytes_[at], std::byte{0}) << "it is the child's";
      }
    }
  }
}

TEST_F(CrossMemoryTest, WhatIsNotThereFailsAndTheRestIsReachedStill) {
  CrossMemory memory = reach();
  std::array<std::byte, 100> own{};
  const iovec piece{own.data(), own.size()};
  for (const std::uint64_t nowhere : {0ULL, 8ULL, ~0ULL - 50, 1ULL << 63}) {
    EXPECT_FALSE(memory.read({&piece, 1}, nowhere, own.size()));
    EXPECT_FALSE(memory.write(nowhere, {&piece, 1}, own.size()));
  }
  EXPECT_FALSE(memory.read({&piece, 1}, address_of(bytes_.data()), own.size() + 1)) << "more than there is room for";
  EXPECT_EQ(memory.denial(), Denial::none);
  EXPECT_TRUE(memory.read({&piece, 1}, address_of(bytes_.data()), own.size()));
}

TEST_F(CrossMemoryTest, AnotherProcessOfThatNumberIsNotTakenForIt) {
  CrossMemory memory = reach();
  const Nonce other{1, 2};
  const iovec piece{const_cast<Nonce*>(&other), sizeof other};
  ASSERT_TRUE(memory.write(address_of(bytes_.data()), {&piece, 1}, sizeof other));
  std::byte record{};
  EXPECT_FALSE(memory.look(0, {&record, 1}));
  EXPECT_EQ(memory.denial(), Denial::not_itself);
  EXPECT_FALSE(memory.write(address_of(bytes_.data()), {&piece, 1}, sizeof other)) << "nor is it written to";
  EXPECT_EQ(reach().denial(), Denial::not_itself);
  EXPECT_EQ(CrossMemory::probe(child_, 4096, nonce_).denial(), Denial::not_itself);
}

TEST_F(CrossMemoryTest, WhatCannotBeReachedHasAReason) {
  EXPECT_EQ(CrossMemory().denial(), Denial::not_wanted);
  EXPECT_EQ(CrossMemory::probe(child_, 0, nonce_).denial(), Denial::not_wanted);
  EXPECT_EQ(CrossMemory::probe(0, address_of(bytes_.data()), nonce_).denial(), Denial::not_seen);
  CrossMemory memory = reach();
  ASSERT_TRUE(memory.is_reached());
  end_child();
  std::byte record{};
  EXPECT_FALSE(memory.look(0, {&record, 1}));
  EXPECT_EQ(memory.denial(), Denial::gone);
  for (std::size_t i = 1; i < CrossMemory::kDenials; ++i)
    EXPECT_FALSE(CrossMemory::reason(static_cast<Denial>(i)).empty());
}

TEST(Identity, AChildDoesNotHaveIt) {
  const auto identity = Identity::create(100'000).value();
  EXPECT_NE(identity.nonce(), Nonce{});
  const Identity other = Identity::create(100).value();
  EXPECT_NE(identity.nonce(), other.nonce());
  EXPECT_EQ(identity.records()[99'999], std::byte{0});
  const pid_t child = ::fork();
  if (child == 0) ::_exit(identity.nonce() == Nonce{} ? 0 : 1);
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace fairlead::shm
