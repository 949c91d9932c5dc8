#pragma once
// The options of `fairlead bulkping`. docs/bulkping.md has the table with Motr's letters.

#include <fairlead/time.hpp>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace fairlead::tools {

inline constexpr std::uint64_t kBulkSizeMax = std::uint64_t{1} << 30;
inline constexpr std::uint64_t kMessageSizeMin = 128;  // a request with a descriptor
inline constexpr std::uint64_t kMessageSizeMax = 64 * 1024;
inline constexpr std::uint32_t kThreadsMax = 32;
inline constexpr int kSendAttempts = 3;
inline constexpr Duration kSendPause = std::chrono::milliseconds{100};  // after the first failed attempt; grows

/// Options of both server and client.
struct BulkpingCommon {
  std::string address;
  std::uint32_t portal = 39;
  std::string tmid;
  std::uint32_t receive_buffers = 2;
  std::uint64_t message_size = 256;
  std::uint64_t receive_size_min = 0;  // 0: message_size
  std::uint32_t messages_max = 16;
  Duration message_timeout = std::chrono::seconds{5};
  Duration bulk_timeout = std::chrono::seconds{10};
  bool is_async = false;  // the machine's own thread delivers events, not the waiting thread
  bool is_verbose = false;
  bool is_quiet = false;
  bool is_json = false;
  bool is_live = false;
  std::vector<std::pair<std::string, std::string>> engine;

  std::uint64_t receive_buffer_size() const { return message_size * messages_max; }
};

struct BulkpingServerOptions : BulkpingCommon {
  BulkpingServerOptions() {
    receive_buffers = 8;
    message_size = 4096;
  }

  std::uint32_t buffers = 20;  // most bulk buffers, and as many for replies
  std::uint64_t bulk_size_max = kBulkSizeMax;
  std::uint64_t memory = std::uint64_t{2} << 30;  // of all bulk buffers together
  Duration delay{};                               // before each active transfer
};

struct BulkpingClientOptions : BulkpingCommon {
  std::string server;
  std::uint64_t bulk_size = 1 << 20;
  std::uint32_t loops = 1;
  std::uint32_t threads = 1;
};

}  // namespace fairlead::tools
