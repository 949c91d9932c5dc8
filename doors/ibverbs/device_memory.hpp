#pragma once
// Device memory. This device has no memory of its own, so it is host memory.

#include <sys/mman.h>

#include <memory>

#include "doors/ibverbs/objects.hpp"

namespace fairlead::ibverbs {

constexpr std::size_t kDeviceMemoryMax = std::size_t{1} << 20;  // bytes per allocation

struct DeviceMemory : ibv_dm {
  using Abi = ibv_dm;
  static std::uint32_t& handle_of(Abi& abi) { return abi.handle; }

  explicit DeviceMemory(OpenContext& owner_) : Abi{}, owner(owner_) {}

  OpenContext& owner;
  std::shared_ptr<std::byte> bytes;  // shared with imported views
  std::size_t length = 0;
  bool is_imported = false;
};

inline DeviceMemory* find(const ibv_dm* abi) {
  return table<DeviceMemory>().find(abi);
}

}  // namespace fairlead::ibverbs
