#include "engine/operations.hpp"

#include "engine/message_context_for_tests.hpp"

namespace fairlead::engine {
namespace {

class OperationsTest : public MessageContextTest {
 protected:
  Operations& operations_ = context_.operations;
};

TEST_F(OperationsTest, OneEndsOnceAndIsFoundNoMore) {
  const std::uint32_t slot = operations_.make(OperationKind::put, port_, 5);
  const OperationHandle handle = operations_.handle_of(slot);
  const std::uint64_t name = operations_.name_of(slot);
  EXPECT_EQ(operations_.find(name), operations_.find(port_, handle));
  EXPECT_EQ(ports_.find(port_)->operations, 1u);
  operations_.complete(slot, Status::ok, 8, now_);
  EXPECT_EQ(operations_.find(name), nullptr);
  EXPECT_EQ(ports_.find(port_)->operations, 0u);
  const auto end = event();
  ASSERT_TRUE(end);
  EXPECT_EQ(end->cookie, 5u);
  EXPECT_EQ(end->length, 8u);
  EXPECT_TRUE(end->is_final);
  EXPECT_FALSE(event());
}

TEST_F(OperationsTest, WhatFailsHasNoLength) {
  operations_.complete(operations_.make(OperationKind::get, port_, 5), Status::refused, 8, now_);
  const auto end = event();
  EXPECT_EQ(end->status, Status::refused);
  EXPECT_EQ(end->length, 0u);
}

TEST_F(OperationsTest, AnotherPortsIsNotFound) {
  const std::uint32_t slot = operations_.make(OperationKind::send, port_, 5);
  EXPECT_EQ(operations_.find(*ports_.open(8), operations_.handle_of(slot)), nullptr);
}

using OperationsDeathTest = OperationsTest;

TEST_F(OperationsDeathTest, NoneEndsWhilePeersSeeItsMemory) {
  const std::uint32_t slot = operations_.make(OperationKind::expose_readable, port_, 5);
  operations_[slot].is_published = true;
  EXPECT_DEATH(operations_.release(slot), "while peers see its memory");
}

}  // namespace
}  // namespace fairlead::engine
