#pragma once
// The command interface of the device file (rdma/rdma_user_cm.h, version 4). Each write() is one command: a header with
// number and sizes, then a structure that says where the answer goes. Sizes and pointers are checked as the kernel
// checks them, with the same errors.

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>

#include "doors/rdma_cm/cancellation.hpp"
#include "doors/rdma_cm/event_file.hpp"
#include "doors/rdma_cm/service.hpp"
#include "doors/rdma_cm/user_memory.hpp"

namespace fairlead::rdma_cm {

/// One command as received.
struct Command {
  Service& service;
  const NotCancelled& not_cancelled;
  std::shared_ptr<EventFile> file;
  int descriptor;
  std::span<const std::byte> in;
  std::size_t out;  // bytes that the program has room for

  /// Returns the command's structure. Zero-fills what the program did not give; the table defines the minimum.
  template <typename Structure>
  Structure get() const {
    Structure structure{};
    std::memcpy(&structure, in.data(), std::min(in.size(), sizeof structure));
    return structure;
  }
  /// Writes as much of the answer as there is room for. Returns 0 or EFAULT.
  template <typename Answer>
  int answer(std::uint64_t to, const Answer& answer) const {
    const auto bytes = std::as_bytes(std::span(&answer, 1));
    return write_user(to, bytes.first(std::min(out, bytes.size()))) ? 0 : EFAULT;
  }
};

/// Converts an address in a command. Returns nullopt if it is no address or its size is wrong.
template <typename Address>
std::optional<SocketName> name_in(const Address& address) {
  return read_name(std::as_bytes(std::span(&address, 1)));
}
template <typename Address>
std::optional<SocketName> name_of_size(const Address& address, std::size_t size) {
  const auto bytes = std::as_bytes(std::span(&address, 1));
  std::uint16_t family = 0;
  std::memcpy(&family, bytes.data(), sizeof family);
  if (size == 0 || size != size_of_family(family)) return std::nullopt;
  return read_name(bytes);
}

/// Each command returns 0 or an errno.
int create_id(const Command& command);
int destroy_id(const Command& command);
int bind_ip(const Command& command);
int bind(const Command& command);
int resolve_ip(const Command& command);
int resolve_address(const Command& command);
int resolve_route(const Command& command);
int query_route(const Command& command);
int query(const Command& command);
int connect(const Command& command);
int listen(const Command& command);
int accept(const Command& command);
int reject(const Command& command);
int disconnect(const Command& command);
int init_pair_attributes(const Command& command);
int get_event(const Command& command);
int set_option(const Command& command);
int notify(const Command& command);
int migrate_id(const Command& command);
int join_ip_group(const Command& command);
int join_group(const Command& command);
int leave_group(const Command& command);

/// Returns the bytes taken, or -1 with errno: the result of write() to one of our device files.
ssize_t write_command(const std::shared_ptr<EventFile>& file, int descriptor, const void* bytes, std::size_t size);

}  // namespace fairlead::rdma_cm
