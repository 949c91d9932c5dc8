#include "host/service_state.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "base/saved.hpp"
#include "host/routes.hpp"

namespace fairlead::host {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

ServiceState example() {
  ServiceState state;
  state.threads = 3;
  state.listener = 5;
  state.visitors.push_back({.socket = 6});
  state.stopped_at = base::Instant(base::Duration(7));
  ServedEngineState& served = state.engines.emplace_back();
  served.socket = 7;
  served.thread = 2;
  served.is_for_any_port = true;
  served.engine.address = base::SocketAddress::from_ip("10.0.0.5", 20480).value();
  link::PeerState& peer = served.engine.link.peers.emplace_back();
  peer.slot = 3;
  peer.session.emplace();
  ApplicationState& application = state.applications.emplace_back();
  application.socket = 8;
  application.memory = 9;
  application.process = 10;
  application.secret = Routes::secret_of(12345, 2);
  application.engine = served.engine.address;
  application.memory_bytes = Layout::head_bytes() + 4096;
  application.pending.push_back({.index = 1, .offset = Layout::head_bytes(), .length = 4096, .events = 1});
  ApplicationPortState& port = application.ports.emplace_back();
  port.index = 2;
  port.socket = 11;
  port.keys = {.given = 40, .blanks = {{.slot = 2, .generation = 5}, {.slot = 3, .generation = 7}}};
  port.deferred.push_back({.request = {.operation = 4, .status = 3}, .serial = 5});
  ServedActiveState& active = port.active.emplace();
  active.memory = Layout::head_bytes();
  active.used_slots[1] = 9;
  active.unanswered.push_back({.name = 12, .word = 3});
  active.waiting.push_back({.arrival = {.head = 8, .bytes = std::vector<std::byte>(24)}, .segment = 2});
  return state;
}

std::string error_of(std::span<const std::byte> bytes) {
  const auto state = decode_state(bytes);
  return state ? "none" : state.error().message;
}

/// Returns the error for an undamaged state with changed values.
template <typename Change>
std::string error_after(Change&& change) {
  ServiceState state = example();
  change(state);
  return error_of(encode(state));
}

TEST(ServiceStateTest, WhatWasSavedIsRead) {
  ServiceState state = example();
  const auto bytes = encode(state);
  auto read = decode_state(bytes);
  ASSERT_TRUE(read.has_value()) << read.error().message;
  EXPECT_EQ(encode(*read), bytes);
  EXPECT_EQ(read->applications.at(0).ports.at(0).keys.blanks.at(1).generation, 7u);
  EXPECT_EQ(read->applications.at(0).ports.at(0).deferred.at(0).request.operation, 4u);
  EXPECT_EQ(read->engines.at(0).engine.link.peers.at(0).slot, 3u);
  EXPECT_EQ(read->threads, 3u);
  EXPECT_EQ(read->engines.at(0).thread, 2u);
  EXPECT_TRUE(read->engines.at(0).is_for_any_port);
  EXPECT_THAT(read->descriptors(), ElementsAre(5, 6, 7, 8, 9, 10, 11));
}

TEST(ServiceStateTest, DamageIsNoticedWhereverItIs) {
  ServiceState state = example();
  const auto bytes = encode(state);
  for (std::size_t place = 0; place < bytes.size(); ++place) {
    auto damaged = bytes;
    damaged[place] ^= std::byte{0x10};
    EXPECT_NE(error_of(damaged), "none") << "byte " << place;
  }
  for (std::size_t length = 0; length < bytes.size(); ++length)
    EXPECT_NE(error_of(std::span(bytes).first(length)), "none");
}

// With a change of the form, bytes of the old one would teach the fuzzer nothing.
TEST(ServiceStateTest, TheFuzzersExamplesHaveTodaysForm) {
  std::size_t examples = 0;
  for (const auto& file : std::filesystem::directory_iterator(FAIRLEAD_SOURCE_FOLDER "/tests/fuzz/corpus/state")) {
    std::ifstream in(file.path(), std::ios::binary);
    const std::vector<char> bytes(std::istreambuf_iterator<char>(in), {});
    const auto all = std::as_bytes(std::span(bytes));
    engine::EngineState engine;
    base::SavedReader reader(all);
    reader(engine);
    EXPECT_TRUE(reader.is_at_end() || decode_state(with_head(all))) << file.path();
    ++examples;
  }
  EXPECT_GT(examples, 0u);
}

TEST(ServiceStateTest, AnotherVersionIsNamed) {
  ServiceState state = example();
  auto bytes = encode(state);
  bytes[8] = std::byte{99};
  EXPECT_THAT(error_of(bytes), HasSubstr("version 99"));
}

TEST(ServiceStateTest, WhatNoneCanHaveIsRefused) {
  EXPECT_EQ(error_after([](ServiceState&) {}), "none");
  EXPECT_NE(error_after([](ServiceState& state) { state.listener = -1; }), "none");
  EXPECT_THAT(error_after([](ServiceState& state) { state.listener = 11; }), HasSubstr("twice"));
  EXPECT_NE(error_after([](ServiceState& state) { state.threads = 0; }), "none");
  EXPECT_NE(error_after([](ServiceState& state) { state.threads = 2; }), "none") << "an engine has the third";
  EXPECT_NE(error_after([](ServiceState& state) { state.threads = kThreadsMax + 1; }), "none");
  EXPECT_NE(error_after([](ServiceState& state) { state.engines[0].thread = 1; }), "none")
      << "its application has another one";
  EXPECT_NE(error_after([](ServiceState& state) { state.applications[0].engine.port = 1; }), "none")
      << "no such engine";
  EXPECT_NE(error_after([](ServiceState& state) { state.applications[0].memory = -1; }), "none");
  EXPECT_NE(error_after([](ServiceState& state) { state.applications[0].pending[0].length = 4097; }), "none");
  EXPECT_NE(error_after([](ServiceState& state) { state.applications[0].pending[0].offset = 0; }), "none");
  EXPECT_NE(error_after([](ServiceState& state) { state.applications[0].pending[0].index = kOperationsMax; }), "none");
  EXPECT_NE(error_after([](ServiceState& state) { state.applications[0].ports[0].index = kPortsMax; }), "none");
  EXPECT_NE(error_after([](ServiceState& state) { state.applications[0].ports[0].keys.given = 1; }), "none")
      << "two are left";
  EXPECT_NE(error_after([](ServiceState& state) { state.applications[0].ports[0].keys.blanks.resize(kKeysAhead + 1); }),
            "none");
}

}  // namespace
}  // namespace fairlead::host
