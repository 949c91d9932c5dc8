#include "engine/engine_options.hpp"

#include <gtest/gtest.h>

#include <cstdlib>

namespace fairlead::engine {
namespace {

TEST(EngineOptions, AreTakenWithAUnit) {
  EngineOptions options;
  EXPECT_TRUE(options.set("give_up_after", "10s"));
  EXPECT_EQ(options.get(Option::give_up_after), 10'000U);
  EXPECT_TRUE(options.set("window_bytes", "2M"));
  EXPECT_EQ(options.get(Option::window_bytes), 2U << 20);
  const auto refused = options.set("ack_delay", "1K");
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("with ns, us, ms, s, min or h behind it"), std::string::npos)
      << refused.error().message;
}

TEST(EngineOptions, TheWordsOfWaitingMeanWhatTheySay) {
  EngineOptions options;
  for (const auto& [word, choice] : {std::pair{"adaptive", queue::WaitChoice::adaptive},
                                     {"spin", queue::WaitChoice::spin},
                                     {"sleep", queue::WaitChoice::sleep}}) {
    EXPECT_TRUE(options.set("wait", word));
    EXPECT_EQ(options.wait(), choice) << word;
  }
  EXPECT_FALSE(options.set("wait", "polite"));
}

TEST(EngineOptions, EveryRowIsCompleteAndItsDefaultInRange) {
  for (const OptionRow& row : option_table()) {
    EXPECT_FALSE(row.name.empty() || row.unit.empty() || row.sentence.empty());
    EXPECT_TRUE(row.environment.starts_with("FAIRLEAD_")) << row.name;
    EXPECT_EQ(base::Settings::name_in_file(row.environment), row.name);
    EXPECT_LE(row.value_min, row.value_default) << row.name;
    EXPECT_GE(row.value_max, row.value_default) << row.name;
  }
  EXPECT_EQ(option_table().size(), static_cast<std::size_t>(Option::count_));
}

TEST(EngineOptions, SetsByNameWithinTheRange) {
  EngineOptions options;
  ASSERT_TRUE(options.set("ack_delay", "75"));
  EXPECT_EQ(options.get(Option::ack_delay), 75u);
}

TEST(EngineOptions, RefusalsNameTheOptionTheRangeAndTheRemedy) {
  EngineOptions options;
  for (const char* text : {"", "x", "-1", "1e3", " 5", "5 ", "0", "99999999999999999999999"}) {
    const auto refused = options.set("ack_delay", text);
    ASSERT_FALSE(refused) << text;
    EXPECT_EQ(refused.error().status, Status::invalid);
    EXPECT_NE(refused.error().message.find("ack_delay"), std::string::npos) << refused.error().message;
    EXPECT_NE(refused.error().message.find("10000"), std::string::npos) << refused.error().message;
  }
  EXPECT_EQ(options.get(Option::ack_delay), EngineOptions().get(Option::ack_delay)) << "a refusal changes nothing";
  EXPECT_FALSE(options.set("no_such_option", "1"));
}

TEST(EngineOptions, TheEnvironmentOverlaysTheDefaults) {
  ::setenv("FAIRLEAD_ACK_DELAY", "33", 1);
  const auto options = EngineOptions::from_environment();
  ::setenv("FAIRLEAD_ACK_DELAY", "soon", 1);
  const auto refused = EngineOptions::from_environment();
  ::unsetenv("FAIRLEAD_ACK_DELAY");
  ASSERT_TRUE(options);
  EXPECT_EQ(options->get(Option::ack_delay), 33u);
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("FAIRLEAD_ACK_DELAY"), std::string::npos) << refused.error().message;
  EXPECT_NE(refused.error().message.find("soon"), std::string::npos);
}

TEST(EngineOptions, WhatHasToBeAPowerOfTwoIsOne) {
  for (const auto& [name, good, bad] : {std::tuple{"window_segments", "512", "1000"}, {"shm_ring", "128K", "100000"}}) {
    EngineOptions options;
    EXPECT_TRUE(options.set(name, good)) << name;
    const auto refused = options.set(name, bad);
    ASSERT_FALSE(refused) << name;
    EXPECT_NE(refused.error().message.find("a power of two"), std::string::npos) << refused.error().message;
  }
  ::setenv("FAIRLEAD_SHM_RING", "100000", 1);
  const auto refused = EngineOptions::from_environment();
  ::unsetenv("FAIRLEAD_SHM_RING");
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("unset FAIRLEAD_SHM_RING"), std::string::npos) << refused.error().message;
}

TEST(EngineOptions, AFormerNameSetsTheOptionUntilTheNameOfTodayDoes) {
  for (const FormerOption& former : former_options()) {
    EngineOptions options;
    const OptionRow& row = option_table()[static_cast<std::size_t>(former.now)];
    const std::uint64_t other = row.value_default == row.value_min ? row.value_max : row.value_min;
    ASSERT_TRUE(options.set(former.name, std::to_string(other)));
    EXPECT_EQ(options.get(former.now), other);

    const std::string then(former.environment), today(row.environment);
    ::setenv(then.c_str(), std::to_string(other).c_str(), 1);
    const auto by_former = EngineOptions::from_environment();
    ::setenv(today.c_str(), std::to_string(row.value_default).c_str(), 1);
    const auto by_both = EngineOptions::from_environment();
    ::setenv(then.c_str(), "soon", 1);
    const auto refused = EngineOptions::from_environment();
    ::unsetenv(then.c_str());
    ::unsetenv(today.c_str());
    ASSERT_TRUE(by_former && by_both);
    EXPECT_EQ(by_former->get(former.now), other);
    EXPECT_EQ(by_both->get(former.now), row.value_default);
    ASSERT_FALSE(refused);
    EXPECT_NE(refused.error().message.find(then), std::string::npos) << refused.error().message;
  }
}

TEST(EngineOptions, EveryWordIsComplete) {
  for (const WordOptionRow& row : word_option_table()) {
    EXPECT_FALSE(row.name.empty() || row.wanted.empty() || row.sentence.empty());
    EXPECT_TRUE(row.environment.starts_with("FAIRLEAD_")) << row.name;
    EXPECT_EQ(base::Settings::name_in_file(row.environment), row.name);
  }
}

Result<EngineOptions> options_of(std::string_view file) {
  auto settings = base::SettingsFile::parse(file, "a.toml");
  return settings ? EngineOptions::of(base::Settings(std::move(*settings))) : std::unexpected(settings.error());
}

TEST(EngineOptions, AFileIsOverlaidByTheEnvironmentAndThatByTheCaller) {
  const char* const file = "ack_delay = \"33us\"\nspin = 7\nwindow_segments = 128\nlog = \"info\"\n";
  ::setenv("FAIRLEAD_SPIN", "8", 1);
  ::setenv("FAIRLEAD_WINDOW_SEGMENTS", "256", 1);
  auto options = options_of(file);
  ::unsetenv("FAIRLEAD_SPIN");
  ::unsetenv("FAIRLEAD_WINDOW_SEGMENTS");
  ASSERT_TRUE(options) << options.error().message;
  ASSERT_TRUE(options->set("window_segments", "512"));
  EXPECT_EQ(options->get(Option::ack_delay), 33U);
  EXPECT_EQ(options->get(Option::spin), 8U);
  EXPECT_EQ(options->get(Option::window_segments), 512U);
  EXPECT_EQ(options->log(), *base::LogLevels::parse("info"));
  EXPECT_EQ(options->get(Option::tiny_max), EngineOptions().get(Option::tiny_max));
  EXPECT_TRUE(options_of("device = \"10.0.0.1\"\ndevices = 2\npersonality = \"ib\"\nexplain = 1\n"));
  EXPECT_EQ(options_of("shm_foreign_max = 7")->get(Option::shm_cma_max), 7U) << "a former name";
}

TEST(EngineOptions, WhatIsWrongInAFileIsNamedWithItsLine) {
  const std::pair<const char*, const char*> rows[] = {
      {"spin = 1\nack_delay = \"soon\"", "ack_delay 'soon': want 1 to 10000 us"},
      {"spin = 1\nack_delay = \"soon\"", "correct a.toml:2"},
      {"\nack_delay = -5", "ack_delay '-5': want"},
      {"\npath = \"tcp\"", "want auto, udp or shm; correct a.toml:2"},
      {"\nfault = \"drop=2\"", "; correct a.toml:2"},
      {"giveup = 1", "a.toml:1: giveup sets nothing: did you mean give_up_after?"},
      {"\nqqqqqqqqqqqqq = 1", "a.toml:2: qqqqqqqqqqqqq sets nothing (`fairlead options` lists the settings)"},
      {"config = \"b.toml\"", "a.toml:1: config sets nothing"},
      {"FAIRLEAD_SPIN = 1", "a.toml:1: FAIRLEAD_SPIN sets nothing"},
  };
  for (const auto& [file, message] : rows) {
    const auto options = options_of(file);
    ASSERT_FALSE(options) << file;
    EXPECT_NE(options.error().message.find(message), std::string::npos) << options.error().message;
  }
}

TEST(EngineOptions, AFileThatCannotBeUsedIsAnErrorThatNamesTheVariable) {
  ::setenv("FAIRLEAD_CONFIG", "/dev", 1);
  const auto refused = EngineOptions::from_environment();
  ::setenv("FAIRLEAD_CONFIG", "", 1);
  const auto none = EngineOptions::from_environment();
  ::unsetenv("FAIRLEAD_CONFIG");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().message, "/dev: is no regular file; correct it, or unset FAIRLEAD_CONFIG");
  EXPECT_TRUE(none);
}

TEST(EngineOptions, WithAKeyAllHasToBeSealedUnlessTold) {
  const auto near = *base::SocketAddress::from_ip("10.1.2.3", 1), far = *base::SocketAddress::from_ip("fd00::1", 1);
  EngineOptions options;
  EXPECT_FALSE(options.seal());
  EXPECT_TRUE(options.seal_require().empty());
  ASSERT_TRUE(options.set("seal", "psk:/etc/key"));
  EXPECT_EQ(options.seal()->keys, "/etc/key");
  EXPECT_TRUE(base::contains(options.seal_require(), near) && base::contains(options.seal_require(), far));
  ASSERT_TRUE(options.set("seal_require", "10.0.0.0/8"));
  EXPECT_TRUE(base::contains(options.seal_require(), near));
  EXPECT_FALSE(base::contains(options.seal_require(), far));
  ASSERT_TRUE(options.set("seal_require", ""));
  EXPECT_TRUE(options.seal_require().empty());
  ASSERT_TRUE(options.set("seal", "x25519:/etc/fairlead/key"));
  EXPECT_EQ(options.seal()->peers, "/etc/fairlead/known_peers");
  ASSERT_TRUE(options.set("seal_peers", "/etc/peers"));
  EXPECT_EQ(options.seal()->peers, "/etc/peers");
  EXPECT_FALSE(options.set("seal", "tls"));
  EXPECT_FALSE(options.set("seal_require", "everywhere"));
  EXPECT_TRUE(options.seal()) << "a refusal changes nothing";
}

TEST(EngineOptions, ReportsGoNowhereUntilToldSo) {
  EngineOptions options;
  EXPECT_EQ(options.flight(), "");
  ASSERT_TRUE(options.set("flight", "stderr"));
  EXPECT_EQ(options.flight(), "stderr");
  ::setenv("FAIRLEAD_FLIGHT", "/tmp/flight.txt", 1);
  const auto from_environment = EngineOptions::from_environment();
  ::unsetenv("FAIRLEAD_FLIGHT");
  ASSERT_TRUE(from_environment);
  EXPECT_EQ(from_environment->flight(), "/tmp/flight.txt");
}

TEST(EngineOptions, LogLevelsComeByNameAndFromTheEnvironment) {
  EngineOptions options;
  EXPECT_FALSE(options.log());
  ASSERT_TRUE(options.set("log", "info"));
  EXPECT_EQ(options.log(), *base::LogLevels::parse("info"));
  ::setenv("FAIRLEAD_LOG", "loud", 1);
  const auto refused = EngineOptions::from_environment();
  ::unsetenv("FAIRLEAD_LOG");
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("log 'loud': want LEVEL"), std::string::npos) << refused.error().message;
  EXPECT_NE(refused.error().message.find("correct or unset FAIRLEAD_LOG"), std::string::npos);
}

TEST(EngineOptions, FaultsComeByNameAndFromTheEnvironment) {
  EngineOptions options;
  EXPECT_FALSE(options.fault().has_faults());
  ASSERT_TRUE(options.set("fault", "drop=1%,seed=7"));
  EXPECT_EQ(options.fault().to_string(), "drop=1%,seed=7");
  const auto refused = options.set("fault", "drop=1");
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("e.g. drop=1%"), std::string::npos) << refused.error().message;
  EXPECT_TRUE(options.fault().has_faults()) << "a refusal changes nothing";

  ::setenv("FAIRLEAD_FAULT", "delay=1ms", 1);
  const auto from_environment = EngineOptions::from_environment();
  ::setenv("FAIRLEAD_FAULT", "delay=1", 1);
  const auto unreadable = EngineOptions::from_environment();
  ::unsetenv("FAIRLEAD_FAULT");
  ASSERT_TRUE(from_environment);
  EXPECT_EQ(from_environment->fault().to_string(), "delay=1ms");
  ASSERT_FALSE(unreadable);
  EXPECT_NE(unreadable.error().message.find("FAIRLEAD_FAULT"), std::string::npos) << unreadable.error().message;
}

}  // namespace
}  // namespace fairlead::engine
