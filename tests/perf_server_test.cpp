// `fairlead perf --server` and `fairlead perf ... HOST`: between two network namespaces, and against hostile clients.

#include <arpa/inet.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <memory>
#include <random>
#include <thread>

#include <nlohmann/json.hpp>

#include "base/file_descriptor.hpp"
#include "tests/child_process.hpp"
#include "tests/perf_command.hpp"
#include "tests/two_namespaces.hpp"

namespace fairlead::tests {
namespace {

using namespace std::chrono_literals;
using testing::AllOf;
using testing::HasSubstr;
using Json = nlohmann::json;
using Words = std::vector<std::string>;

constexpr const char* kServing = "serving at";

class PerfServer : public testing::Test {
 protected:
  void SetUp() override {
    if (!has_two_processors()) GTEST_SKIP() << "processors 0 and 1 are not ours";
  }

  /// Starts a server at a port of the loopback.
  void serve() {
    port_ = free_port();
    start(perf_words({"--server", "--bind", "127.0.0.1", "--port", std::to_string(port_), "--cpu", "1"}));
  }
  void start(const Words& words) {
    server_ = std::make_unique<ChildProcess>(words);
    ASSERT_TRUE(server_->wait_for_text(kServing, 20s)) << server_->error_output();
  }
  Words latency(const std::string& seconds = "0.1") const {
    return perf_words({"latency", "127.0.0.1:" + std::to_string(port_), "--json", "--seconds", seconds});
  }
  /// Measures, as soon as the server has finished with its last client.
  Finished measure() const {
    Finished finished;
    for (int tries = 0; tries < 600; ++tries) {
      finished = run(latency(), 100s);
      if (!finished.error_output.contains("try again later")) break;
      std::this_thread::sleep_for(50ms);
    }
    return finished;
  }

  int port_ = 0;
  std::unique_ptr<ChildProcess> server_;
};

sockaddr_in loopback_at(int port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

/// A connection to the server that is no `fairlead perf`.
base::FileDescriptor stranger(int port, std::string_view bytes) {
  base::FileDescriptor socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const sockaddr_in address = loopback_at(port);
  EXPECT_EQ(::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  (void)::send(socket.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
  return socket;
}

/// Reads until the server closes the connection.
std::string rest_of(const base::FileDescriptor& socket) {
  std::string all;
  char bytes[4096];
  for (ssize_t got; (got = ::recv(socket.get(), bytes, sizeof bytes, 0)) > 0;)
    all.append(bytes, static_cast<std::size_t>(got));
  return all;
}

TEST_F(PerfServer, MeasuresBetweenTwoHosts) {
  TwoNamespaces hosts;
  if (const auto fault = hosts.set_up()) GTEST_SKIP() << *fault;
  start(hosts.enter_second(perf_words({"--server", "--cpu", "1"})));
  const std::string page = fmt::format("{}perf_server_test.{}.html", testing::TempDir(), ::getpid());
  const Words kinds[] = {{"latency", "--report", page},
                         {"bandwidth", "--size", "64K"},
                         {"rate"},
                         {"am"},
                         {"am", "--one-way", "--unpacked", "--size", "1K"},
                         {"verbs", "--op", "send"},
                         {"verbs", "--op", "write"},
                         {"verbs", "--op", "fetch_add"},
                         {"verbs", "--op", "read", "--stream", "--size", "8,4K"}};
  for (const Words& kind : kinds) {
    Words words = perf_words(kind);
    words.insert(words.end(), {"10.77.0.2", "--json", "--seconds", "0.1"});
    Finished finished;
    for (int tries = 0; tries < 200; ++tries) {  // the server may still clean up after the last client
      finished = run(hosts.enter_first(words), 100s);
      if (!finished.error_output.contains("try again later")) break;
      std::this_thread::sleep_for(50ms);
    }
    ASSERT_EQ(finished.exit_code, 0) << fmt::format("{}", fmt::join(kind, " ")) << finished.error_output
                                     << server_->error_output();
    const Json rows = Json::parse(finished.output);
    ASSERT_EQ(rows.size(), kind.back() == "8,4K" ? 2u : 1u) << "no floors: " << finished.output;
    for (const Json& row : rows) {
      EXPECT_EQ(row["path"], "udp");
      EXPECT_GT(row["messages_per_s"], 0);
      EXPECT_TRUE(row["canary_ns"].is_null());
    }
  }
  std::ifstream file(page);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  EXPECT_THAT(text, HasSubstr("fairlead perf --server at 10.77.0.2"));
  std::filesystem::remove(page);

  server_->send_signal(SIGINT);
  EXPECT_EQ(server_->wait(20s), 0);
  EXPECT_EQ(server_->error_output(), "");
  EXPECT_THAT(server_->output(), HasSubstr("10.77.0.1 measures\n"));
}

TEST_F(PerfServer, HasOneClientAtATime) {
  serve();
  ChildProcess first(latency("60"));
  ASSERT_TRUE(server_->wait_for_text("127.0.0.1 measures", 20s));
  const Finished second = run(latency(), 60s);
  EXPECT_EQ(second.exit_code, 1);
  EXPECT_THAT(second.error_output, HasSubstr("does not measure: it measures with 127.0.0.1 now: try again later"));

  first.send_signal(SIGKILL);
  EXPECT_EQ(first.wait(20s), 128 + SIGKILL);
  const Finished third = measure();
  EXPECT_EQ(third.exit_code, 0) << third.error_output;
}

TEST_F(PerfServer, SurvivesWhatStrangersSend) {
  serve();
  const std::string plan =
      R"({"protocol":1,"measure":"messages","size_max":8,"depth":1,"unpacked":false,"op":"send","stream":false})";
  const std::string at = R"({"at":"127.0.0.1@udp:9:39:1"})";
  const auto command = [](std::string_view role, std::string_view size, std::string_view in_flight) {
    return fmt::format(R"({{"begin":"{}","size":{},"in_flight":{},"checked":true,"loan":false}})", role, size,
                       in_flight);
  };
  Words all{"",
            "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
            std::string(100'000, 'x'),
            std::string(5000, '['),
            "{}\n",
            "null\n",
            R"({"protocol":2})"
            "\n",
            R"({"protocol":1,"measure":"verbs","size_max":99999999999,"depth":1})"
            "\n",
            plan + "\n{\"at\":\"nonsense\"}\n",
            plan + "\n" + at + "\n" + command("echo", "0", "1") + "\n",
            plan + "\n" + at + "\n" + command("take put", "67108864", "4096") + "\n",
            plan + "\n" + at + "\n" + command("take put", "-1", "1") + "\n",
            plan + "\n" + at + "\n" + command("take", "8", "1") + "\n" + command("take", "8", "1") + "\n"};
  for (const char* kind : {"active messages", "queue pairs"}) {
    std::string other = plan;
    other.replace(other.find("messages"), 8, kind);
    all.push_back(other + "\n{\"at\":\"00\"}\n");
    all.push_back(other + "\n{\"at\":\"" + std::string(44, 'f') + "\"}\n");
    all.push_back(other + "\n{\"at\":\"" + std::string(96, 'f') + "\"}\n");
  }
  std::minstd_rand random(7);
  std::string noise(3000, '\0');
  for (char& byte : noise) byte = static_cast<char>(random());
  all.push_back(noise);
  for (const std::string& bytes : all) {
    base::FileDescriptor socket;
    std::string answer;
    for (int tries = 0; tries < 600; ++tries) {
      socket = stranger(port_, bytes);
      (void)::shutdown(socket.get(), SHUT_WR);
      answer = rest_of(socket);
      if (!answer.contains("try again later")) break;
      std::this_thread::sleep_for(20ms);
    }
    EXPECT_FALSE(answer.contains("try again later")) << bytes.substr(0, 60);
  }
  const Finished finished = measure();
  EXPECT_EQ(finished.exit_code, 0) << finished.error_output;
  server_->send_signal(SIGTERM);
  EXPECT_EQ(server_->wait(20s), 0) << server_->error_output();
}

TEST_F(PerfServer, DropsAClientThatSaysNothing) {
  serve();
  const auto silent = stranger(port_, "{\"protocol\"");
  const Finished finished = measure();
  EXPECT_EQ(finished.exit_code, 0) << finished.error_output;
  EXPECT_THAT(rest_of(silent), HasSubstr("nothing came in time"));
}

/// A server that greets with these bytes.
class FalseServer {
 public:
  explicit FalseServer(std::string greeting) : listener_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address = loopback_at(0);
    socklen_t length = sizeof address;
    auto* const at = reinterpret_cast<sockaddr*>(&address);
    EXPECT_EQ(::bind(listener_.get(), at, length), 0);
    EXPECT_EQ(::listen(listener_.get(), 1), 0);
    EXPECT_EQ(::getsockname(listener_.get(), at, &length), 0);
    port_ = ntohs(address.sin_port);
    thread_ = std::thread([this, text = std::move(greeting)] {
      const base::FileDescriptor client(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
      (void)::send(client.get(), text.data(), text.size(), MSG_NOSIGNAL);
      (void)rest_of(client);
    });
  }
  ~FalseServer() { thread_.join(); }

  int port() const { return port_; }

 private:
  base::FileDescriptor listener_;
  int port_ = 0;
  std::thread thread_;
};

TEST_F(PerfServer, OfAnotherKindOrReleaseIsNamed) {
  const std::pair<const char*, testing::Matcher<std::string>> kinds[] = {
      {"SSH-2.0-OpenSSH_9.2\r\n", HasSubstr("there is no `fairlead perf --server` at 127.0.0.1")},
      {"{\"fairlead perf\": 77, \"release\": \"9.9\"}\n",
       AllOf(HasSubstr("release 9.9"), HasSubstr("protocol 77"), HasSubstr("use the same release at both ends"))},
      {"{\"fairlead perf\": 1, \"release\": 5}\n", HasSubstr("sent no valid 'release'")}};
  for (const auto& [greeting, expected] : kinds) {
    FalseServer server(greeting);
    port_ = server.port();
    const Finished finished = run(latency(), 60s);
    EXPECT_EQ(finished.exit_code, 1);
    EXPECT_THAT(finished.error_output, expected);
  }
}

TEST_F(PerfServer, ThatIsMissingIsNamedWithTheCommandThatStartsIt) {
  port_ = free_port();
  const Finished finished = run(latency(), 60s);
  EXPECT_EQ(finished.exit_code, 1);
  EXPECT_THAT(finished.error_output,
              AllOf(HasSubstr("Connection refused"), HasSubstr("is `fairlead perf --server` running there")));
}

TEST_F(PerfServer, WhatNeedsOneHostIsRefused) {
  for (const Words& more :
       {Words{"--path", "shm"}, Words{"--compare"}, Words{"--loss", "1%"}, Words{"--cpus", "0,1"}}) {
    Words words = latency();
    words.insert(words.end(), more.begin(), more.end());
    const Finished finished = run(words, 60s);
    EXPECT_EQ(finished.exit_code, 2) << more.front();
    EXPECT_THAT(finished.error_output, HasSubstr(more.front()));
  }
  for (const char* bad : {"", "10.0.0.5:0", "10.0.0.5:99999", "10.0.0.5@udp", "[::1"}) {
    const Finished finished = run(perf_words({"latency", bad}), 60s);
    EXPECT_EQ(finished.exit_code, 2) << bad << finished.error_output;
  }
}

TEST_F(PerfServer, ItsOptionsNeedIt) {
  EXPECT_EQ(run(perf_words({"--port", "5000", "latency"}), 60s).exit_code, 2);
  EXPECT_EQ(run(perf_words({"--server", "latency"}), 60s).exit_code, 2);
  EXPECT_EQ(run(perf_words({"--server", "--bind", "nowhere"}), 60s).exit_code, 2);
}

}  // namespace
}  // namespace fairlead::tests
