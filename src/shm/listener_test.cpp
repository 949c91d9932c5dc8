#include "shm/listener.hpp"

#include <gtest/gtest.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <vector>

#include "base/place_for_tests.hpp"

namespace fairlead::shm {
namespace {

/// A directory of its own, with a watch for what happens in it.
class ListenerFiles : public testing::Test {
 protected:
  ListenerFiles() : directory_(::mkdtemp(template_)) {}
  ~ListenerFiles() override {
    ::umask(mask_);
    std::filesystem::remove_all(directory_);
  }
  std::vector<std::string> names() const {
    std::vector<std::string> all;
    for (const auto& entry : std::filesystem::directory_iterator(directory_)) all.push_back(entry.path().filename());
    return all;
  }
  mode_t mode_of_the_only_one() const {
    struct stat facts{};
    const auto all = names();
    EXPECT_EQ(all.size(), 1u);
    return ::stat((directory_ + "/" + all.at(0)).c_str(), &facts) == 0 ? facts.st_mode & 0777 : 0;
  }

  char template_[32] = "/tmp/fairlead-listener-XXXXXX";
  std::string directory_;
  mode_t mask_ = ::umask(077);
  Users users_;
  base::SocketAddress own_ = base::place_for_tests(1);
};

// A process that sweeps the directory would take a socket without a listener for a leftover.
TEST_F(ListenerFiles, HaveTheirNameOnlyWhenSomebodyListens) {
  const base::FileDescriptor watch(::inotify_init1(IN_NONBLOCK | IN_CLOEXEC));
  ASSERT_GE(::inotify_add_watch(watch.get(), directory_.c_str(), IN_CREATE | IN_MOVED_TO | IN_DELETE), 0);
  const auto listener = Listener::open(own_, {.directory = directory_}, users_);
  ASSERT_TRUE(listener) << listener.error().message;
  alignas(inotify_event) std::byte events[4096];
  const ssize_t bytes = ::read(watch.get(), events, sizeof events);
  ASSERT_GT(bytes, 0);
  const auto* const first = reinterpret_cast<const inotify_event*>(events);
  EXPECT_FALSE(Name::is_engines(first->name)) << "bound, and not listened at yet: " << first->name;
  ASSERT_EQ(names().size(), 1u);
  EXPECT_TRUE(Name::is_engines(names()[0]));
  Listener::sweep(directory_, users_);
  EXPECT_EQ(names().size(), 1u);
}

TEST_F(ListenerFiles, AreForOthersIfTheyAreAdmittedWhateverTheMask) {
  {
    const auto listener = Listener::open(own_, {.directory = directory_, .is_for_all = true}, users_);
    ASSERT_TRUE(listener) << listener.error().message;
    EXPECT_EQ(mode_of_the_only_one(), 0666u);
  }
  EXPECT_TRUE(names().empty());
  ::umask(0);
  const auto listener = Listener::open(own_, {.directory = directory_}, users_);
  ASSERT_TRUE(listener) << listener.error().message;
  EXPECT_EQ(mode_of_the_only_one(), 0600u);
}

TEST_F(ListenerFiles, OfAnotherThatListensStandAndOfADeadOneDoNot) {
  const auto name = Name::of(own_, directory_).value();
  {
    const base::FileDescriptor dead = Socket::make();
    ASSERT_EQ(::bind(dead.get(), name.kernel(), name.length()), 0);
  }
  const auto listener = Listener::open(own_, {.directory = directory_}, users_);
  ASSERT_TRUE(listener) << listener.error().message;
  const auto second = Listener::open(own_, {.directory = directory_}, users_);
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().status, Status::in_use);
  EXPECT_EQ(names().size(), 1u);
  EXPECT_TRUE(Socket::connect(name, users_));
}

TEST_F(ListenerFiles, StayWhereTheListenerWasInherited) {
  const auto owner = Listener::open(own_, {.directory = directory_}, users_);
  ASSERT_TRUE(owner.has_value());
  const auto name = Name::of(own_, directory_).value();
  for (int i = 0; i < 2; ++i) {
    auto heir = Listener::inherit(base::FileDescriptor(::dup(owner->descriptor())), users_);
    ASSERT_TRUE(heir.has_value()) << heir.error().message;
    EXPECT_TRUE(Socket::connect(name, users_).has_value());
    EXPECT_TRUE(heir->accept().has_value());
  }
  EXPECT_EQ(names().size(), 1u);
  EXPECT_TRUE(Socket::connect(name, users_).has_value()) << "it waits for the next";
  EXPECT_TRUE(owner->accept().has_value());
  EXPECT_EQ(Listener::inherit(Socket::make(), users_).error().status, Status::invalid) << "it does not listen";
}

}  // namespace
}  // namespace fairlead::shm
