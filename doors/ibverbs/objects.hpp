#pragma once
// The objects behind the C structures that programs hold. Each begins with the structure and owns the native object.

#include <pthread.h>

#include <atomic>
#include <cerrno>
#include <exception>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <string>
#include <vector>

#include "base/process_mark.hpp"
#include "doors/ibverbs/abi.hpp"
#include "doors/ibverbs/bracket.hpp"
#include "doors/ibverbs/identity.hpp"
#include "doors/ibverbs/object_table.hpp"
#include "doors/ibverbs/pointer_registry.hpp"
#include "doors/ibverbs/refusal.hpp"

namespace fairlead::ibverbs {

/// Sets errno and returns the error.
inline int fail(int code) {
  errno = code;
  return code;
}
inline std::nullptr_t refuse(int code) {
  errno = code;
  return nullptr;
}
/// Also logs the reason and the remedy, if the device lacks what the program asked for.
inline int fail(const Error& error) {
  if (error.status == Status::not_supported || error.system_errno == EOPNOTSUPP) note_refusal(error.message);
  return fail(error.system_errno != 0 ? error.system_errno : EINVAL);
}
inline std::nullptr_t refuse(const Error& error) {
  fail(error);
  return nullptr;
}

/// The result of an entry point after an exception, which must not reach C: an errno, or null.
class Thrown {
 public:
  explicit Thrown(int code) : code_(code) {}
  operator int() const { return code_; }  // NOLINT(google-explicit-constructor): it stands for either
  template <typename Object>
  operator Object*() const {  // NOLINT(google-explicit-constructor)
    return nullptr;
  }

 private:
  int code_;
};
/// Converts the current exception to ENOMEM or EIO.
inline Thrown thrown() noexcept {
  try {
    throw;
  } catch (const std::bad_alloc&) {
    return Thrown(fail(ENOMEM));
  } catch (...) {
    return Thrown(fail(EIO));
  }
}

/// Initialises the public mutex and condition variable of an object.
template <typename Object>
void initialize_waiting(Object& object) {
  pthread_mutex_init(&object.mutex, nullptr);
  pthread_cond_init(&object.cond, nullptr);
}

/// An opened device. Programs hold a pointer to its `context`. Inline functions access the fields before it.
struct OpenContext : verbs_context {
  OpenContext(const Identity& identity_, verbs::Context native_)
      : verbs_context{}, identity(identity_), native(std::move(native_)) {}

  const Identity& identity;
  verbs::Context native;
  base::ProcessMark mark;    // after fork() the child's copy has no engine
  bool is_imported = false;  // a second view of a context; closing it does not close the original
};

/// Returns null if the context is not open. Otherwise it stays valid until the Call ends.
OpenContext* find_context(const ibv_context* context);
/// Destroys the objects that a program leaves in a context when it closes it.
void destroy_all_of(const OpenContext& context);

struct Domain : ibv_pd {
  using Abi = ibv_pd;
  static std::uint32_t& handle_of(Abi& abi) { return abi.handle; }

  Domain(OpenContext& owner_, verbs::ProtectionDomain native_)
      : Abi{&owner_.context, 0}, owner(owner_), native(std::move(native_)) {}

  OpenContext& owner;
  verbs::ProtectionDomain native;
  using Count = std::atomic<int>;
  std::shared_ptr<Count> parents = std::make_shared<Count>(0);  // number of parent domains over this one
  std::shared_ptr<Count> base;  // of a parent domain: the count of the protection domain that it stands for
  bool is_imported = false;
};

struct Region : ibv_mr {
  using Abi = ibv_mr;
  static std::uint32_t& handle_of(Abi& abi) { return abi.handle; }

  explicit Region(OpenContext& owner_) : Abi{}, owner(owner_) {}

  OpenContext& owner;
  std::optional<verbs::MemoryRegion> native;  // nullopt if it is imported
  std::shared_ptr<std::byte> device_bytes;    // the device memory that it covers, if any
  std::mutex changing;
};

struct Window : ibv_mw {
  using Abi = ibv_mw;
  static std::uint32_t& handle_of(Abi& abi) { return abi.handle; }

  Window(OpenContext& owner_, ibv_pd* pd_, ibv_mw_type type_, verbs::MemoryWindow native_)
      : Abi{&owner_.context, pd_, native_.rkey(), 0, type_}, owner(owner_), native(std::move(native_)) {}

  OpenContext& owner;
  verbs::MemoryWindow native;
  std::mutex binding;
};

struct Channel : ibv_comp_channel {
  Channel(OpenContext& owner_, verbs::CompletionChannel native_)
      : ibv_comp_channel{&owner_.context, native_.descriptor(), 0}, owner(owner_), native(std::move(native_)) {}

  OpenContext& owner;
  verbs::CompletionChannel native;
};

struct XrcDomain : ibv_xrcd {
  XrcDomain(OpenContext& owner_, verbs::XrcDomain native_)
      : ibv_xrcd{&owner_.context}, owner(owner_), native(std::move(native_)) {}

  OpenContext& owner;
  verbs::XrcDomain native;
};

struct Queue : ibv_cq_ex {
  using Abi = ibv_cq_ex;
  static std::uint32_t& handle_of(Abi& abi) { return abi.handle; }

  explicit Queue(OpenContext& owner_) : Abi{}, owner(owner_) { initialize_waiting(*this); }
  ibv_cq* face() { return reinterpret_cast<ibv_cq*>(static_cast<ibv_cq_ex*>(this)); }

  OpenContext& owner;
  std::optional<verbs::CompletionQueue> native;  // empty only during creation
  Bracket bracket;                               // between start_poll and end_poll
  verbs::WorkCompletion current;                 // the completion that the read_* calls return
};

struct SharedReceive : ibv_srq {
  using Abi = ibv_srq;
  static std::uint32_t& handle_of(Abi& abi) { return abi.handle; }

  explicit SharedReceive(OpenContext& owner_) : Abi{}, owner(owner_) { initialize_waiting(*this); }

  OpenContext& owner;
  std::optional<verbs::SharedReceiveQueue> native;
};

/// The requests that ibv_wr_* builders have collected since wr_start().
struct Staged {
  struct Piece {
    verbs::SendRequest request;
    std::size_t sge_first = 0, sge_count = 0;
    std::size_t inline_first = 0, inline_length = 0;
    std::optional<verbs::AddressVector> to;  // a copy: the program may destroy the handle before posting
    std::optional<verbs::WindowBinding> binding;
  };
  std::vector<Piece> pieces;
  std::vector<verbs::Sge> sges;
  std::vector<std::byte> inlined;
  std::vector<verbs::SendRequest> requests;
  int error = 0;
};

struct Pair : ibv_qp_ex {
  using Abi = ibv_qp_ex;
  static std::uint32_t& handle_of(Abi& abi) { return abi.qp_base.handle; }

  explicit Pair(OpenContext& owner_) : Abi{}, owner(owner_) { initialize_waiting(qp_base); }

  OpenContext& owner;
  std::optional<verbs::QueuePair> native;
  bool signals_all = false;
  bool is_extended = false;
  Bracket bracket;  // between wr_start and wr_complete or wr_abort
  Staged staged;
};

struct Address : ibv_ah {
  using Abi = ibv_ah;
  static std::uint32_t& handle_of(Abi& abi) { return abi.handle; }

  Address(OpenContext& owner_, ibv_pd* pd_, verbs::AddressHandle native_)
      : Abi{&owner_.context, pd_, 0}, owner(owner_), native(std::move(native_)) {}

  OpenContext& owner;
  verbs::AddressHandle native;
};

// Objects that these functions find stay valid until the current Call ends.
inline Domain* find(const ibv_pd* pd) {
  return table<Domain>().find(pd);
}
inline Region* find(const ibv_mr* mr) {
  return table<Region>().find(mr);
}
inline Window* find(const ibv_mw* window) {
  return table<Window>().find(window);
}
inline Queue* find(const ibv_cq* cq) {
  return table<Queue>().find(reinterpret_cast<const ibv_cq_ex*>(cq));
}
inline SharedReceive* find(const ibv_srq* srq) {
  return table<SharedReceive>().find(srq);
}
inline Pair* find(const ibv_qp* qp) {
  return table<Pair>().find(reinterpret_cast<const ibv_qp_ex*>(qp));
}
inline Address* find(const ibv_ah* ah) {
  return table<Address>().find(ah);
}
/// Returns null if the pointer is invalid or the object is destroyed.
Channel* find(const ibv_comp_channel* channel);
XrcDomain* find(const ibv_xrcd* domain);

verbs::AddressVector to_native(const ibv_ah_attr& attributes);
ibv_ah_attr to_abi(const verbs::AddressVector& vector);

}  // namespace fairlead::ibverbs
