#pragma once
// A host engine for tests in a child process, so that applications have separate memory and threads.

#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>

#include "base/child_for_tests.hpp"
#include "base/process_mark.hpp"
#include "host/service.hpp"

namespace fairlead::host {

class DaemonForTests {
 public:
  explicit DaemonForTests(ServiceOptions options = {}) {
    char folder[] = "/tmp/fairlead-host-XXXXXX";
    EXPECT_NE(::mkdtemp(folder), nullptr);
    folder_ = folder;
    options.file = file();
    int ready[2] = {};
    EXPECT_EQ(::pipe(ready), 0);
    std::fflush(nullptr);
    process_ = ::fork();
    if (process_ == 0) serve(std::move(options), ready[1]);
    ::close(ready[1]);
    char byte = 0;
    EXPECT_EQ(::read(ready[0], &byte, 1), 1) << "the host engine did not start";
    ::close(ready[0]);
  }
  ~DaemonForTests() {
    if (mark_.is_inherited()) return;  // in another child of the test: the daemon belongs to the test process
    end();
    std::filesystem::remove_all(folder_);
  }
  DaemonForTests(const DaemonForTests&) = delete;
  DaemonForTests& operator=(const DaemonForTests&) = delete;

  std::string file() const { return folder_ + "/host"; }
  pid_t process() const { return process_; }
  /// Kills the daemon at once, even if it is stopped (SIGSTOP).
  void end() {
    if (process_ <= 0) return;
    ::kill(process_, SIGKILL);
    ::waitpid(std::exchange(process_, 0), nullptr, 0);
  }

  /// Returns a daemon that all tests of the program share until its end.
  static DaemonForTests& shared() {
    static DaemonForTests the_daemon;
    return the_daemon;
  }

 private:
  [[noreturn]] static void serve(ServiceOptions options, int ready) {
    base::is_child_of_test = true;
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    auto service = Service::open(std::move(options));
    if (!service) {
      std::fprintf(stderr, "%s\n", service.error().message.c_str());
      ::_exit(1);
    }
    if (::write(ready, "r", 1) != 1) ::_exit(1);
    (*service)->run();
    ::_exit(0);
  }

  std::string folder_;
  pid_t process_ = 0;
  const base::ProcessMark mark_;
};

}  // namespace fairlead::host
