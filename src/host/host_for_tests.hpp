#pragma once
// A host engine for a test, in a thread of the test process, with its own socket file.

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "host/service.hpp"

namespace fairlead::host {

class HostForTests {
 public:
  explicit HostForTests(ServiceOptions options = {}) {
    char folder[] = "/tmp/fairlead-host-XXXXXX";
    EXPECT_NE(::mkdtemp(folder), nullptr);
    folder_ = folder;
    options.file = file();
    service_ = Service::open(std::move(options)).value();
    thread_ = std::thread([this] { serve(); });
  }
  ~HostForTests() {
    end();
    std::filesystem::remove_all(folder_);
  }
  HostForTests(const HostForTests&) = delete;
  HostForTests& operator=(const HostForTests&) = delete;

  std::string file() const { return folder_ + "/host"; }
  Service& service() { return *service_; }
  /// Closes all connections, as if its process had ended.
  void end() {
    if (!service_) return;
    service_->stop();
    thread_.join();
    service_.reset();
  }

 private:
  /// Refuses requests for replacement, as the daemon does if it cannot be replaced.
  void serve() {
    while (!service_->run())
      if (service_->takes_replacement_wish()) service_->refuse_replacement({Status::not_supported, 0, "a test"});
  }

  std::string folder_;
  std::unique_ptr<Service> service_;
  std::thread thread_;
};

}  // namespace fairlead::host
