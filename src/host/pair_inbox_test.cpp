#include "host/pair_inbox.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "base/page_memory.hpp"
#include "queue/layout.hpp"

namespace fairlead::host {
namespace {

// The application can write to the whole page. What it writes over our own progress must not keep us awake.
TEST(PairInbox, IsEmptyWhateverTheApplicationWritesOverOurProgress) {
  auto memory = base::PageMemory::allocate(PairLayout::requests_bytes());
  ASSERT_TRUE(memory);
  auto inbox = PairInbox::create(memory->bytes());
  ASSERT_TRUE(inbox);
  EXPECT_TRUE(inbox->is_empty());
  auto& header = *reinterpret_cast<queue::Header*>(memory->bytes().data());
  header.consumed.store(header.consumed.load() + 1);
  EXPECT_TRUE(inbox->is_empty());
  header.produced.store(header.produced.load() + 1);
  EXPECT_FALSE(inbox->is_empty()) << "a request";
}

}  // namespace
}  // namespace fairlead::host
