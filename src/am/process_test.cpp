// The program that loads the library may fork and block signals at any time.

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>

#include "am/pair_for_tests.hpp"
#include "base/child_for_tests.hpp"

namespace fairlead::am {
namespace {

namespace fs = std::filesystem;

// Static objects of a program: a bundle with a thread, and one without.
struct Program {
  explicit Program(const std::string& folder)
      : domain(Domain::open({.ip = "127.0.0.1", .engine = {{"shm_directory", folder}}}).value()),
        awake(domain, BundleMode::parallel),
        polled(domain, BundleMode::sequential) {
    for (Bundle* bundle : {&awake, &polled}) {
      Endpoint* endpoint = bundle->add_endpoint().value();
      EXPECT_EQ(endpoint->set_handler(kEcho, &echo, &side), Status::ok);
      EXPECT_EQ(endpoint->set_handler(kNote, &note, &side), Status::ok);
      endpoint->set_tag(Tag::all());
      (bundle == &awake ? first : second) = endpoint;
    }
    EXPECT_EQ(second->map(0, second->name(), 0), Status::ok);
    EXPECT_EQ(awake.start_interrupts(), Status::ok);
  }

  bool sends_to_itself() {
    const std::array<Argument, 2> words{1, 2};
    if (second->request(0, kEcho, words) != Status::ok) return false;
    while (side.seen.size() < 2) {
      if (polled.wait() != Status::ok) return false;
    }
    return true;
  }

  Side side;
  Domain domain;
  Bundle awake, polled;
  Endpoint *first = nullptr, *second = nullptr;
};

std::unique_ptr<Program>& the_program() {
  static std::unique_ptr<Program> program;
  return program;
}

class AmProcess : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::temp_directory_path() / "fairlead_am_XXXXXX";
    ASSERT_NE(::mkdtemp(folder_.data()), nullptr);
    the_program() = std::make_unique<Program>(folder_);
  }
  void TearDown() override {
    the_program().reset();
    fs::remove_all(folder_);
  }
  std::ptrdiff_t names() const { return std::distance(fs::directory_iterator(folder_), fs::directory_iterator()); }

  std::string folder_;
};

int answers_of_inherited() {
  Program& its = *the_program();
  for (Bundle* bundle : {&its.awake, &its.polled}) {
    if (bundle->poll() != Status::bad_state || bundle->wait() != Status::bad_state) return 1;
    if (const auto more = bundle->add_endpoint(); more || more.error().message.find("fork()") == std::string::npos)
      return 2;
    if (bundle->start_interrupts() != Status::bad_state || bundle->has_message() || bundle->arm()) return 3;
    bundle->stop_interrupts();
  }
  for (Endpoint* endpoint : {its.first, its.second}) {
    if (endpoint->request(0, kEcho, {}) != Status::bad_state) return 4;
    endpoint->set_tag(Tag::none());
    endpoint->set_segment(nullptr, 0);
    if (endpoint->name().udp_port == 0) return 5;
  }
  return 0;
}

TEST_F(AmProcess, AChildAnswersAndExitsAndNothingOfTheParentsIsGone) {
  const std::ptrdiff_t before = names();
  EXPECT_GT(before, 0);
  EXPECT_EQ(base::exit_of_child(&answers_of_inherited), 0);
  EXPECT_EQ(names(), before);
  EXPECT_TRUE(the_program()->sends_to_itself());
}

TEST_F(AmProcess, AChildHasBundlesOfItsOwn) {
  EXPECT_EQ(base::exit_of_child([this] {
              Program own(folder_);
              return own.sends_to_itself() && base::is_signal_left_to_us() ? 0 : 1;
            }),
            0);
}

}  // namespace
}  // namespace fairlead::am
