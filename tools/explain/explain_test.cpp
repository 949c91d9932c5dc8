#include "tools/explain/explain.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fmt/format.h>
#include <sys/stat.h>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "tools/base/command_line.hpp"
#include "tools/explain/pages.hpp"

namespace fairlead::tools {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

TEST(Explain, EveryFormOfAStatusNamesTheSame) {
  for (const char* word : {"stale", "STALE", "ENOENT", "enoent", "2", "-2"}) {
    const auto text = explain(word);
    ASSERT_TRUE(text) << word;
    EXPECT_THAT(*text, StartsWith("stale (ENOENT, -2): ")) << word;
  }
}

TEST(Explain, AnErrnoOfTwoStatusesTellsBoth) {
  const auto text = explain("ETIMEDOUT");
  ASSERT_TRUE(text);
  EXPECT_THAT(*text, AllOf(HasSubstr("timed_out ("), HasSubstr("silent (")));
}

TEST(Explain, TextsOfTheLibraryAreUnderstood) {
  for (int i = 0; i <= static_cast<int>(Status::system); ++i) {
    const auto status = static_cast<Status>(i);
    EXPECT_TRUE(explain(to_string(status))) << to_string(status);
    EXPECT_TRUE(explain(std::to_string(-to_errno(status)))) << to_string(status);
  }
}

TEST(Explain, CountersAreKnownByTheirNameAndItsLastWord) {
  EXPECT_THAT(*explain("link.resends_fast"), StartsWith("link.resends_fast (a counter): "));
  EXPECT_THAT(*explain("replayed"), StartsWith("link.refused.replayed (a counter): "));
  EXPECT_THAT(*explain("unknown token"), StartsWith("link.refused.unknown_token (a counter): "));
}

// Users know which program printed the number.
TEST(Explain, ANumberIsTakenForEverythingThatItMayBe) {
  EXPECT_THAT(*explain("12"),
              AllOf(HasSubstr("no_memory (ENOMEM"), HasSubstr("IBV_WC_RETRY_EXC_ERR (completion "
                                                              "status 12): the peer did not acknowledge")));
  EXPECT_THAT(*explain("0x2"), HasSubstr("no_ack (vendor_err 2): "));
  EXPECT_THAT(*explain("10"), HasSubstr("IBV_EVENT_PORT_ERR"));
}

TEST(Explain, StatusesOfTheCFaceAreKnownByNameAndNumber) {
  EXPECT_THAT(*explain("FAIRLEAD_SILENT"), StartsWith("silent (ETIMEDOUT"));
  for (const char* word : {"13", "status 13"})
    EXPECT_THAT(*explain(word), HasSubstr("FAIRLEAD_SILENT (status 13 in C): the peer answered before")) << word;
}

TEST(Explain, WhatProgramsPrintIsKnown) {
  for (const auto& [printed, meant] :
       {std::pair{"transport retry counter exceeded", "IBV_WC_RETRY_EXC_ERR"},
        {"Work Request Flushed Error", "IBV_WC_WR_FLUSH_ERR"},
        {"aborted error", "IBV_WC_REM_ABORT_ERR"},
        {"IBV_WC_REM_ABORT_ERR", "IBV_WC_REM_ABORT_ERR"},
        {"IBV_EVENT_PATH_MIG", "IBV_EVENT_PATH_MIG"},
        {"vendor_err 20", "peer_ended (vendor_err 20)"},
        {"vendor_err 0x14", "peer_ended (vendor_err 20)"},
        {"peer_gone", "peer_gone (event of a transfer machine 3)"},
        {"diagnostic", "diagnostic (event of a transfer machine 2)"},
        {"RDMA_CM_EVENT_UNREACHABLE", "RDMA_CM_EVENT_UNREACHABLE (event of librdmacm 7)"},
        {"RDMA_CM_EVENT_REJECTED", "RDMA_CM_EVENT_REJECTED (event of librdmacm 8)"}})
    EXPECT_THAT(explain(printed).value_or("nothing"), StartsWith(meant)) << printed;
  EXPECT_THAT(*explain("8"),
              HasSubstr("IB_CM_REJ_INVALID_SERVICE_ID (reason of RDMA_CM_EVENT_REJECTED 8): no program"));
  EXPECT_THAT(*explain("28"), HasSubstr("rdma_reject()"));
}

TEST(Explain, WordsOfVerbsAreKnownInFullAndInShort) {
  for (const char* word : {"IBV_WC_RETRY_EXC_ERR", "retry_exc_err", "RETRY_EXC_ERR"})
    EXPECT_THAT(*explain(word), StartsWith("IBV_WC_RETRY_EXC_ERR (completion status 12): ")) << word;
  EXPECT_THAT(*explain("key_unknown"), StartsWith("key_unknown (vendor_err 10): "));
}

TEST(Explain, SettingsAreKnownByNameAndVariable) {
  for (const char* word : {"give_up_after", "FAIRLEAD_GIVE_UP_AFTER"})
    EXPECT_THAT(*explain(word), StartsWith("give_up_after (a setting, FAIRLEAD_GIVE_UP_AFTER): ")) << word;
}

TEST(Explain, StatesAreKnown) {
  for (const char* word : {"RTS", "rts", "IBV_QPS_RTS"})
    EXPECT_THAT(*explain(word), StartsWith("IBV_QPS_RTS (queue pair state 3): ready to send")) << word;
  EXPECT_THAT(*explain("stopping"), StartsWith("stopping (state of a transfer machine 4): "));
}

TEST(Explain, RefusalsOfActiveMessagesAreKnown) {
  EXPECT_THAT(*explain("bad_handler"),
              StartsWith("bad_handler (why an active message came back 4): the receiver has no such handler"));
  EXPECT_THAT(*explain("left"), StartsWith("left (why an active message came back 11): "));
  EXPECT_THAT(*explain("AM_ERR_IN_USE"), StartsWith("AM_ERR_IN_USE (code of AM-2 5): "));
}

TEST(Explain, AnErrnoThatIsNoStatusIsTheKernels) {
  for (const char* word : {"ENETUNREACH", "enetunreach", "101", "-101"})
    EXPECT_THAT(*explain(word), StartsWith("ENETUNREACH (errno 101): ")) << word;
}

TEST(Explain, VariablesThatAreNoSettingsAreKnown) {
  EXPECT_THAT(*explain("FAIRLEAD_PERSONALITY"), StartsWith("FAIRLEAD_PERSONALITY (a variable, roce or ib): "));
}

// The pages of the documentation -------------------------------------------------------------------------------------

void expect_page(const char* name, const std::string& page) {
  std::ifstream stream(fmt::format("{}/docs/{}", FAIRLEAD_SOURCE_FOLDER, name));
  const std::string written{std::istreambuf_iterator<char>(stream), {}};
  if (written == page) return;
  const std::string made = testing::TempDir() + name;
  std::ofstream(made) << page;
  FAIL() << "docs/" << name << " is not what the sources say: copy " << made << " over it";
}

TEST(Explain, IsThePageOfWords) {
  expect_page("words.md", words_page());
}

TEST(Explain, IsThePageOfSettings) {
  expect_page("settings.md", settings_page());
}

/// What `fairlead options --json` prints of one setting.
nlohmann::json option_now(const char* name) {
  CLI::App app;
  int code = -1;
  add_options(app, code);
  testing::internal::CaptureStdout();
  app.parse("options --json");
  const auto all = nlohmann::json::parse(testing::internal::GetCapturedStdout());
  EXPECT_EQ(code, 0);
  const auto found = std::ranges::find(all, name, [](const auto& row) { return row.at("name"); });
  return found == all.end() ? nlohmann::json() : *found;
}

TEST(Options, SayWhatSetsThem) {
  const std::string file = testing::TempDir() + "fairlead_options.toml";
  std::ofstream(file) << "# of the test\nspin = 7\nack_delay = \"1ms\"\ndevice = \"10.0.0.1\"\n";
  ::chmod(file.c_str(), 0600);
  ::setenv("FAIRLEAD_CONFIG", file.c_str(), 1);
  ::setenv("FAIRLEAD_SPIN", "8", 1);
  const auto by_variable = option_now("spin"), by_file = option_now("ack_delay"), device = option_now("device"),
             by_nobody = option_now("tiny_max");
  ::unsetenv("FAIRLEAD_SPIN");
  ::unsetenv("FAIRLEAD_CONFIG");
  std::filesystem::remove(file);
  EXPECT_EQ(by_variable.at("from"), "FAIRLEAD_SPIN");
  EXPECT_EQ(by_variable.at("set"), "8");
  EXPECT_EQ(by_file.at("from"), file + ":3");
  EXPECT_EQ(by_file.at("set"), "1ms");
  EXPECT_EQ(device.at("from"), file + ":4");
  EXPECT_TRUE(by_nobody.at("from").is_null() && by_nobody.at("set").is_null());
}

TEST(Explain, AnythingElseIsAnErrorThatNamesIt) {
  for (const char* word : {"", "nonsense", "-", "99999", "--2"}) {
    const auto text = explain(word);
    ASSERT_FALSE(text) << word;
    EXPECT_THAT(text.error().message, HasSubstr(fmt::format("'{}'", word)));
  }
}

TEST(Explain, AMisspeltWordIsSuggested) {
  for (const auto& [word, meant] : {std::pair{"cancelled", "canceled"},
                                    {"IBV_WC_RETRY_EXCEEDED_ERR", "IBV_WC_RETRY_EXC_ERR"},
                                    {"engine.dropped.no_bufer", "engine.dropped.no_buffer"},
                                    {"giveup", "give_up_after"},
                                    {"FAIRLEAD_GIVEUP", "FAIRLEAD_GIVE_UP_AFTER"},
                                    {"FAIRLEAD_SILENCE", "FAIRLEAD_SILENT"}})
    EXPECT_THAT(explain(word).error().message, HasSubstr(fmt::format("did you mean {}?", meant)));
}

// A word may come from a log that contains terminal escape sequences.
TEST(Explain, AnErrorCommandsNoTerminal) {
  EXPECT_THAT(explain("\033[31m").error().message, HasSubstr("'?[31m'"));
}

TEST(Explain, WithoutAWordItListsAll) {
  const std::string all = explain_all();
  for (const char* word :
       {"silent", "IBV_QPS_RTS", "AM_ERR_IN_USE", "link.resends_fast", "give_up_after", "seal", "FAIRLEAD_PERSONALITY"})
    EXPECT_THAT(all, HasSubstr(*explain(word))) << word;
}

TEST(Explain, AMalformedDescriptorIsAnError) {
  const auto text = explain(std::string(128, 'f'));
  ASSERT_FALSE(text);
  EXPECT_EQ(text.error().status, Status::invalid);
}

}  // namespace
}  // namespace fairlead::tools
