#include "net/c_face.hpp"

#include <array>

#include "net/clock.hpp"

namespace fairlead::net::c {
namespace {

/// The last failure of one thread. The text has a fixed bound, so that reporting an error allocates nothing.
struct LastFailure {
  Status status = Status::ok;
  bool is_of_add = false;
  std::array<char, 512> text{};
};
constinit thread_local LastFailure last_failure;

// The C and C++ enumerators have equal values, so a cast converts them.
template <typename Own, typename C>
constexpr bool is_same(Own own, C c) {
  return static_cast<int>(own) == static_cast<int>(c);
}
static_assert(is_same(Status::system, FAIRLEAD_SYSTEM) && is_same(Status::stale, FAIRLEAD_STALE));
static_assert(is_same(QueueKind::active_bulk_send, FAIRLEAD_NET_ACTIVE_SEND) && kQueueKinds == FAIRLEAD_NET_QUEUES);
static_assert(is_same(MachineState::failed, FAIRLEAD_NET_FAILED));
static_assert(is_same(MachineEvent::Kind::statistics, FAIRLEAD_NET_EVENT_STATISTICS));
static_assert(kAnyColour == FAIRLEAD_NET_ANY_COLOUR &&
              to_engine(Instant(Duration(FAIRLEAD_NET_NEVER))) == base::kNever);

const char* what_it_says(Status status) {
  switch (status) {
    case Status::bad_state:
      return "the object is not in a state that allows this";
    case Status::again:
      return "a bound is reached: deliver events, then try again";
    case Status::timed_out:
      return "the deadline has passed";
    case Status::invalid:
      return "an argument is out of range, or of another object";
    default:
      return nullptr;
  }
}

}  // namespace

std::size_t write_text(std::string_view from, char* to, std::size_t size) noexcept {
  if (size == 0 || to == nullptr) return from.size();
  const std::size_t some = std::min(from.size(), size - 1);
  std::copy_n(from.begin(), some, to);
  to[some] = '\0';
  return from.size();
}

fairlead_status fail(Status status, std::string_view why) noexcept {
  last_failure.status = status;
  last_failure.is_of_add = false;
  write_text(why, last_failure.text.data(), last_failure.text.size());
  return to_c(status);
}

fairlead_status fail(const Error& error) noexcept {
  return fail(error.status, error.message);
}

fairlead_status fail_add(Status status) noexcept {
  last_failure.status = status;
  last_failure.is_of_add = true;
  return to_c(status);
}

fairlead_status fail_as(Status status) noexcept {
  const char* const why = what_it_says(status);
  return fail(status, why != nullptr ? why : to_string(status));
}

fairlead_status fail_thrown() noexcept {
  try {
    throw;
  } catch (const std::bad_alloc&) {
    return fail(Status::no_memory, "no memory");
  } catch (const std::exception& thrown) {
    return fail(Status::system, thrown.what());
  } catch (...) {
    return fail(Status::system, "something unknown was thrown");
  }
}

fairlead_status fail_null() noexcept {
  return fail(Status::invalid, "a handle, or the place of a result, is null");
}

BufferCallback adapt(fairlead_net_buffer_callback callback, void* user) {
  if (callback == nullptr) return {};
  return [callback, user](const BufferEvent& event) {
    const std::span<const std::byte> lent = event.loan != nullptr ? event.loan->bytes() : std::span<const std::byte>();
    const fairlead_net_buffer_event told{
        .struct_size = sizeof(told),
        .buffer = handle_of<fairlead_net_buffer>(&event.buffer),
        .machine = handle_of<fairlead_net_machine>(event.machine),
        .queue = static_cast<fairlead_net_queue>(event.queue),
        .status = to_c(event.status),
        .is_final = event.is_final,
        .length = event.length,
        .offset = event.offset,
        .room = event.room(),
        .time_ns = event.time.time_since_epoch().count(),
        .sender = event.sender ? handle_of<fairlead_net_end_point>(&event.sender) : nullptr,
        .loan = lent.data(),
        .loan_owner = event.loan};
    callback(&told, user);
  };
}

}  // namespace fairlead::net::c

namespace c = fairlead::net::c;

const char* fairlead_status_name(fairlead_status status) {
  return fairlead::to_string(static_cast<fairlead::Status>(status)).data();  // views of literals, hence 0-terminated
}

int fairlead_status_errno(fairlead_status status) {
  return fairlead::to_errno(static_cast<fairlead::Status>(status));
}

size_t fairlead_net_explain_last(char* text, size_t size) {
  const auto explain = [&] {
    if (!c::last_failure.is_of_add) return c::write_text(c::last_failure.text.data(), text, size);
    return c::write_text(fairlead::net::TransferMachine::explain_last().message, text, size);
  };
  return c::guarded_or(std::size_t{0}, explain);
}

int64_t fairlead_net_now(void) {
  return fairlead::net::now().time_since_epoch().count();
}
