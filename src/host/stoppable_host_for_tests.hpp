#pragma once
// A host engine for tests that can be stopped for a while, as by SIGSTOP.

#include <gtest/gtest.h>
#include <stdlib.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>

#include "host/service.hpp"

namespace fairlead::host {

/// A host engine in a thread of the test. It serves only while it is not stopped.
class StoppableHost {
 public:
  StoppableHost() {
    char folder[] = "/tmp/fairlead-host-XXXXXX";
    EXPECT_NE(::mkdtemp(folder), nullptr);
    folder_ = folder;
    service_ = Service::open({.file = file(), .engine = {}}).value();
    thread_ = std::thread([this] { serve(); });
  }
  ~StoppableHost() {
    service_->stop();
    go_on();
    thread_.join();
    std::filesystem::remove_all(folder_);
  }
  StoppableHost(const StoppableHost&) = delete;
  StoppableHost& operator=(const StoppableHost&) = delete;

  std::string file() const { return folder_ + "/host"; }
  void stop() {
    is_to_stop_ = true;
    while (!is_stopped_) std::this_thread::yield();
  }
  /// Returns when the host engine serves again, so the next stop() waits for a stop of its own.
  void go_on() {
    is_to_stop_ = false;
    while (is_stopped_) std::this_thread::yield();
  }
  bool is_stopped() const { return is_to_stop_; }

 private:
  void serve() {
    while (!service_->run(base::MonotonicClock::now() + std::chrono::milliseconds(1))) {
      while (is_to_stop_) {
        is_stopped_ = true;
        std::this_thread::yield();
      }
      is_stopped_ = false;
    }
  }

  std::string folder_;
  std::unique_ptr<Service> service_;
  std::atomic<bool> is_to_stop_{false}, is_stopped_{false};
  std::thread thread_;
};

}  // namespace fairlead::host
