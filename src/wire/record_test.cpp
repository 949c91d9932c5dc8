#include "wire/record.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace fairlead::wire {
namespace {

const Envelope kEnvelope{.operation = Operation::put,
                         .status = 3,
                         .flags = 0x1234,
                         .source_port = 5,
                         .target_port = 6,
                         .key = 0x0102030405060708,
                         .cookie = 0x1112131415161718,
                         .offset = 0x2122232425262728,
                         .a = 0x3132333435363738};

void append(std::vector<std::byte>& run, std::uint16_t size) {
  run.resize(aligned(run.size()));
  const std::size_t begin = run.size();
  run.resize(begin + whole_bytes(size), std::byte{0x5a});
  encode_whole(kEnvelope, size, run.data() + begin);
}

TEST(Record, ARunOfMessagesIsReadBack) {
  const std::vector<std::uint16_t> sizes{0, 1, 7, 8, 9, 100, 3};
  std::vector<std::byte> run;
  for (std::uint16_t size : sizes) append(run, size);
  ASSERT_TRUE(is_run_of_records(run));
  RecordReader reader(run);
  for (std::uint16_t size : sizes) {
    ASSERT_FALSE(reader.is_empty());
    const Record record = reader.next();
    EXPECT_EQ(record.kind, RecordKind::whole);
    EXPECT_EQ(record.envelope, kEnvelope);
    EXPECT_EQ(record.bytes.size(), size);
    EXPECT_EQ(
        (reinterpret_cast<std::uintptr_t>(record.bytes.data()) - reinterpret_cast<std::uintptr_t>(run.data())) % 8, 0U);
  }
  EXPECT_TRUE(reader.is_empty());
}

TEST(Record, AChunkIsReadBack) {
  std::vector<std::byte> run(kRecordBytes + kChunkBytes + 40);
  encode_chunk(kEnvelope, {.message = 7, .slot = 8, .size = 1 << 30, .offset = 999}, 40, run.data());
  ASSERT_TRUE(is_run_of_records(run));
  const Record record = RecordReader(run).next();
  EXPECT_EQ(record.kind, RecordKind::chunk);
  EXPECT_EQ(record.envelope, kEnvelope);
  EXPECT_EQ(record.chunk.message, 7U);
  EXPECT_EQ(record.chunk.slot, 8U);
  EXPECT_EQ(record.chunk.size, 1U << 30);
  EXPECT_EQ(record.chunk.offset, 999U);
  EXPECT_EQ(record.bytes.size(), 40U);
}

TEST(Record, RunsThatDoNotFitAreRefused) {
  std::vector<std::byte> run;
  append(run, 9);
  append(run, 16);
  ASSERT_TRUE(is_run_of_records(run));
  for (std::size_t size = 0; size < run.size(); ++size) {
    const bool is_first_alone = size == whole_bytes(9) || size == aligned(whole_bytes(9));
    EXPECT_EQ(is_run_of_records(std::span(run).first(size)), is_first_alone) << size;
  }
  run.push_back({});
  EXPECT_FALSE(is_run_of_records(run));
}

TEST(Record, UnknownKindsAndOperationsAreRefused) {
  std::vector<std::byte> run;
  append(run, 8);
  const auto with = [&](std::size_t at, std::uint8_t value) {
    std::vector<std::byte> changed = run;
    changed[at] = static_cast<std::byte>(value);
    return is_run_of_records(changed);
  };
  EXPECT_FALSE(with(0, 0));
  EXPECT_FALSE(with(0, 3));
  EXPECT_FALSE(with(1, 0));
  EXPECT_FALSE(with(1, static_cast<std::uint8_t>(kOperationLast) + 1));
  EXPECT_FALSE(with(3, 1));
  EXPECT_FALSE(with(6, 9));
  EXPECT_FALSE(with(7, 1));
}

TEST(Record, AChunkTravelsAlone) {
  std::vector<std::byte> run;
  append(run, 8);
  const std::size_t begin = run.size();
  run.resize(begin + kRecordBytes + kChunkBytes + 8);
  encode_chunk(kEnvelope, {.message = 1, .slot = 0, .size = 8, .offset = 0}, 8, run.data() + begin);
  EXPECT_FALSE(is_run_of_records(run));
  EXPECT_TRUE(is_run_of_records(std::span(run).subspan(begin)));
}

}  // namespace
}  // namespace fairlead::wire
