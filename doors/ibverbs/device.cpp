// The device list, and opening a device.
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <bit>
#include <cstring>
#include <deque>

#include <fmt/format.h>

#include "base/log.hpp"
#include "doors/ibverbs/absent.hpp"
#include "doors/ibverbs/explain.hpp"
#include "doors/ibverbs/objects.hpp"
#include "doors/ibverbs/operations.hpp"

namespace fairlead::ibverbs {
namespace {

/// Libraries for hardware look behind ibv_device for a pointer that marks a device as theirs. They find zeros.
struct ListedDevice {
  ibv_device abi{};
  std::array<std::byte, 2048> zeros{};
  const Identity* identity = nullptr;
};

template <std::size_t size>
void copy_text(char (&out)[size], const std::string& text) {
  std::strncpy(out, text.c_str(), size - 1);
}

/// Returns the same pointers each time, because some programs compare them.
std::deque<ListedDevice>& listed() {
  static auto* const devices = [] {
    auto* made = new std::deque<ListedDevice>;
    for (const Identity& identity : identities()) {
      ListedDevice& device = made->emplace_back();
      device.identity = &identity;
      device.abi.node_type = IBV_NODE_CA;
      device.abi.transport_type = IBV_TRANSPORT_IB;
      copy_text(device.abi.name, identity.name);
      copy_text(device.abi.dev_name, identity.uverbs);
      copy_text(device.abi.dev_path, "/sys/class/infiniband_verbs/" + identity.uverbs);
      copy_text(device.abi.ibdev_path, "/sys/class/infiniband/" + identity.name);
    }
    return made;
  }();
  return *devices;
}

ListedDevice* find_device(const ibv_device* device) {
  for (ListedDevice& each : listed()) {
    if (&each.abi == device) return &each;
  }
  return nullptr;
}

OpenContext* around(const ibv_context* context) {
  const auto place = reinterpret_cast<std::uintptr_t>(context) - offsetof(verbs_context, context);
  return static_cast<OpenContext*>(reinterpret_cast<verbs_context*>(place));
}

/// Fills the public fields of a context. Programs duplicate its command descriptor and import it; the file behind the
/// descriptor identifies the context.
ibv_context* show(OpenContext& context, ibv_device* device, int descriptor) {
  ibv_context& abi = context.context;
  abi.device = device;
  abi.cmd_fd = descriptor;
  abi.async_fd = context.native.async_descriptor();
  abi.num_comp_vectors = static_cast<int>(context.native.limits().comp_vectors);
  pthread_mutex_init(&abi.mutex, nullptr);
  abi.abi_compat = __VERBS_ABI_IS_EXTENDED;
  set_operations(context);
  registry<OpenContext>().insert(&context);
  explain_at_exit();
  return &abi;
}

}  // namespace

OpenContext* find_context(const ibv_context* abi) {
  if (abi == nullptr) return nullptr;
  OpenContext* context = around(abi);
  return registry<OpenContext>().contains(context) ? context : nullptr;
}

}  // namespace fairlead::ibverbs

using namespace fairlead::ibverbs;
namespace verbs = fairlead::verbs;

extern "C" {

ibv_device** ibv_get_device_list(int* count) try {
  auto& devices = listed();
  auto* list = static_cast<ibv_device**>(std::calloc(devices.size() + 1, sizeof(ibv_device*)));
  if (list == nullptr) return refuse(ENOMEM);
  for (std::size_t i = 0; i < devices.size(); ++i) list[i] = &devices[i].abi;
  if (count != nullptr) *count = static_cast<int>(devices.size());
  errno = 0;
  return list;
} catch (const std::exception&) {
  return thrown();
}

void ibv_free_device_list(ibv_device** list) {
  std::free(list);
}

const char* ibv_get_device_name(ibv_device* device) {
  return device != nullptr ? device->name : nullptr;
}

__be64 ibv_get_device_guid(ibv_device* device) try {
  const ListedDevice* found = find_device(device);
  return found != nullptr ? std::byteswap(found->identity->guid) : 0;
} catch (const std::exception&) {
  (void)thrown();
  return 0;
}

int ibv_get_device_index(ibv_device* device) try {
  const auto& devices = listed();
  for (std::size_t i = 0; i < devices.size(); ++i) {
    if (&devices[i].abi == device) return static_cast<int>(i);
  }
  return -1;
} catch (const std::exception&) {
  (void)thrown();
  return -1;
}

ibv_context* ibv_open_device(ibv_device* device) try {
  ListedDevice* listed_device = find_device(device);
  if (listed_device == nullptr) return refuse(ENODEV);
  const Identity& identity = *listed_device->identity;
  auto native = verbs::Context::open(identity.device, {.personality = identity.personality, .engine = {}});
  if (!native) {
    fairlead::base::log(fairlead::LogLevel::error, fairlead::LogTopic::verbs, {},
                        fmt::format("cannot open {}: {}", identity.name, native.error().message));
    return refuse(native.error());
  }
  auto* context = new OpenContext(identity, std::move(*native));
  return show(*context, device, ::memfd_create("fairlead", MFD_CLOEXEC));
} catch (const std::exception&) {
  return thrown();
}

ibv_context* ibv_import_device(int descriptor) try {
  struct stat wanted{}, status{};
  if (::fstat(descriptor, &wanted) != 0) return refuse(EBADF);
  for (OpenContext* each : registry<OpenContext>().all()) {
    const Call call;
    if (find_context(&each->context) == nullptr || ::fstat(each->context.cmd_fd, &status) != 0) continue;
    if (status.st_ino != wanted.st_ino || status.st_dev != wanted.st_dev) continue;
    auto* context = new OpenContext(each->identity, each->native);
    context->is_imported = true;
    return show(*context, each->context.device, descriptor);
  }
  return refuse(tell_absent(Absent::foreign_device));
} catch (const std::exception&) {
  return thrown();
}

int ibv_close_device(ibv_context* abi) try {
  const Call call;
  OpenContext* context = find_context(abi);
  if (context == nullptr || !registry<OpenContext>().erase(context)) return fail(EINVAL);
  destroy_all_of(*context);
  explain_context(*context);
  if (!context->is_imported) {
    [[maybe_unused]] const auto closed = context->native.close();
  }
  ::close(abi->cmd_fd);
  {
    const verbs::Context ended = std::move(context->native);
  }
  // Programs read a context before any call, also through an object that is destroyed. So its memory stays for a while.
  registry<OpenContext>().rest(context);
  return 0;
} catch (const std::exception&) {
  return thrown();
}
}
