#include "doors/ibverbs/sysfs_tree.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <mutex>
#include <optional>
#include <string_view>

#include "base/environment.hpp"
#include "base/file_signals.hpp"
#include "base/folder.hpp"
#include "base/log.hpp"
#include "base/process_mark.hpp"
#include "doors/ibverbs/identity.hpp"

namespace fairlead::ibverbs {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kLockSuffix = ".lock";
constexpr int kNamesTried = 16;
constexpr int kReapedMax = 256;  // most leftover trees that one process removes

void write(const fs::path& file, std::string_view text) {
  const int out = ::open(file.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (out < 0) return;
  base::write_now(out, text);
  ::close(out);
}

std::string guid_text(std::uint64_t guid) {
  return fmt::format("{:04x}:{:04x}:{:04x}:{:04x}\n", guid >> 48, guid >> 32 & 0xffff, guid >> 16 & 0xffff,
                     guid & 0xffff);
}

std::string gid_text(const verbs::Gid& gid) {
  std::string text;
  for (std::size_t i = 0; i < gid.size(); i += 2)
    text += fmt::format("{}{:02x}{:02x}", i == 0 ? "" : ":", gid[i], gid[i + 1]);
  return text + "\n";
}

void fill_device(const fs::path& root, const Identity& identity) {
  std::error_code ignored;
  const bool is_roce = identity.personality == verbs::Personality::roce;
  const fs::path device = root / "sys/class/infiniband" / identity.name;
  const fs::path port = device / "ports/1";
  const fs::path uverbs = root / "sys/class/infiniband_verbs" / identity.uverbs;
  for (const fs::path& folder : {device / "device/net" / identity.device.interface_name, port / "gids", port / "pkeys",
                                 port / "gid_attrs/types", port / "gid_attrs/ndevs", uverbs, root / "dev/infiniband"}) {
    fs::create_directories(folder, ignored);
  }
  write(device / "node_type", "1: CA\n");
  write(device / "node_guid", guid_text(identity.guid));
  write(device / "sys_image_guid", guid_text(identity.guid));
  write(device / "fw_ver", "0.0.1\n");
  write(device / "board_id", "FAIRLEAD\n");
  write(device / "hca_type", "Fairlead\n");
  write(device / "hw_rev", "0\n");
  write(device / "device/numa_node", "-1\n");
  write(device / "device/local_cpus", "ffffffff\n");
  write(device / "device/vendor", "0x1fa1\n");
  write(device / "device/device", "0x0001\n");
  write(port / "state", "4: ACTIVE\n");
  write(port / "phys_state", "5: LinkUp\n");
  write(port / "link_layer", is_roce ? "Ethernet\n" : "InfiniBand\n");
  write(port / "lid", fmt::format("{:#x}\n", is_roce ? 0 : identity.lid()));
  write(port / "sm_lid", fmt::format("{:#x}\n", is_roce ? 0 : identity.lid()));
  write(port / "lid_mask_count", "0\n");
  write(port / "sm_sl", "0\n");
  write(port / "cap_mask", "0x04010000\n");
  write(port / "rate", "100 Gb/sec (4X EDR)\n");
  write(port / "pkeys/0", "0xffff\n");
  for (std::uint32_t i = 0; i < verbs::PortAttributes{}.gid_count; ++i) {
    const std::string entry = std::to_string(i);
    write(port / "gids" / entry, gid_text(verbs::has_gid(i) ? identity.device.gid : verbs::Gid{}));
    if (!verbs::has_gid(i)) continue;
    write(port / "gid_attrs/types" / entry, is_roce ? "RoCE v2\n" : "IB/RoCE v1\n");
    write(port / "gid_attrs/ndevs" / entry, identity.device.interface_name + "\n");
  }
  write(uverbs / "ibdev", identity.name + "\n");
  write(uverbs / "abi_version", "1\n");
  write(uverbs / "dev", fmt::format("231:{}\n", 192));
  fs::create_symlink("/dev/null", root / "dev/infiniband" / identity.uverbs, ignored);
}

/// Creates the connection manager's files. Opening its device file is wrapped (doors/rdma_cm).
void fill_manager(const fs::path& root) {
  std::error_code ignored;
  const fs::path manager = root / "sys/class/misc/rdma_cm";
  fs::create_directories(manager, ignored);
  fs::create_directories(root / "dev/infiniband", ignored);
  write(manager / "abi_version", "4\n");
  write(manager / "dev", "10:59\n");
  fs::create_symlink("/dev/null", root / "dev/infiniband/rdma_cm", ignored);
}

/// Returns a folder that only this user can write to, or nullopt if none can be made.
std::optional<base::PrivateFolder> find_folder() {
  const char* runtime = base::environment("XDG_RUNTIME_DIR");
  for (const std::string parent : {runtime != nullptr ? runtime : "", "/tmp"}) {
    if (!parent.starts_with('/')) continue;
    std::string complaint;
    const auto folder = base::private_folder(parent, fmt::format("fairlead-{}", ::geteuid()), complaint);
    if (!folder) complaint = folder.error().message;
    if (!complaint.empty()) base::log(LogLevel::warning, LogTopic::verbs, {}, "files of the RDMA device: " + complaint);
    if (folder) return *folder;
  }
  return std::nullopt;
}

/// Takes the lock file of a tree. Returns -1 if another process holds it or it no longer exists.
int take_lock(const fs::path& lock, int flags) {
  const int file = ::open(lock.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW | flags, 0600);
  if (file < 0) return -1;
  struct stat opened{}, named{};
  if (::flock(file, LOCK_EX | LOCK_NB) == 0 && ::fstat(file, &opened) == 0 && ::stat(lock.c_str(), &named) == 0 &&
      opened.st_ino == named.st_ino) {
    return file;
  }
  ::close(file);
  return -1;
}

void remove_tree(const fs::path& tree) {
  std::error_code ignored;
  fs::remove_all(tree, ignored);
  fs::remove(fs::path(tree.string() + std::string(kLockSuffix)), ignored);
}

void reap(const fs::path& folder) {
  std::error_code failed;
  int left = kReapedMax;
  for (fs::directory_iterator entry(folder, failed), end; !failed && entry != end && left > 0;
       entry.increment(failed)) {
    const fs::path& lock = entry->path();
    if (lock.extension() != kLockSuffix) continue;
    const int file = take_lock(lock, 0);
    if (file < 0) continue;
    --left;
    remove_tree(fs::path(lock).replace_extension());
    ::close(file);
  }
}

class Tree {
 public:
  std::string folder() {
    const std::lock_guard guard(mutex_);
    std::error_code ignored;
    if (root_.empty() || !fs::exists(root_, ignored)) make();
    return root_.string();
  }

  void leave() {
    const std::unique_lock guard(mutex_, std::try_to_lock);
    if (!guard || root_.empty()) return;
    remove_tree(root_);
    if (is_folder_ours_alone_) ::rmdir(root_.parent_path().c_str());
  }

 private:
  void make() {
    root_.clear();
    const auto found = find_folder();
    if (!found) return;
    const fs::path folder = found->path;
    is_folder_ours_alone_ = found->is_temporary;
    reap(folder);
    for (int i = 0; i < kNamesTried; ++i) {
      const fs::path root = folder / fmt::format("{}-{}", ::getpid(), i);
      if (take_lock(root.string() + std::string(kLockSuffix), O_CREAT) < 0) continue;  // held until this process ends
      std::error_code ignored;
      fs::remove_all(root, ignored);
      for (const Identity& identity : identities()) fill_device(root, identity);
      write(root / "sys/class/infiniband_verbs/abi_version", "6\n");
      fill_manager(root);
      root_ = root;
      return;
    }
  }

  std::mutex mutex_;
  fs::path root_;
  bool is_folder_ours_alone_ = false;
};

// The child of a fork makes its own tree, because its parent may exit first.
constinit base::OfProcess<Tree> tree;

}  // namespace

std::string sysfs_tree() {
  static std::atomic<bool> goes_at_exit{false};  // also in children
  if (!goes_at_exit.exchange(true)) std::atexit([] { tree->leave(); });
  return tree->folder();
}

}  // namespace fairlead::ibverbs
