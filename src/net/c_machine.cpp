// C interface <fairlead/net.h>: transfer machines.

#include <cstddef>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <type_traits>
#include <vector>

#include "net/c_face.hpp"

namespace net = fairlead::net;
namespace c = fairlead::net::c;

namespace {

net::MachineCallback adapt_machine(fairlead_net_machine_callback callback, void* user) {
  if (callback == nullptr) return {};
  return [callback, user](const net::MachineEvent& event) {
    std::string text, peer;  // 0-terminated copies; empty without memory, since nobody catches what leaves a callback
    c::guarded_or(false, [&] {
      text = event.text;
      peer = event.peer;
      return true;
    });
    const fairlead_net_machine_event told{
        .struct_size = sizeof(told),
        .kind = static_cast<fairlead_net_machine_event_kind>(event.kind),
        .machine = c::handle_of<fairlead_net_machine>(&event.machine),
        .time_ns = event.time.time_since_epoch().count(),
        .status = c::to_c(event.status),
        .next_state = static_cast<fairlead_net_machine_state>(event.next_state),
        .end_point = event.end_point ? c::handle_of<fairlead_net_end_point>(&event.end_point) : nullptr,
        .text = text.c_str(),
        .peer = peer.c_str()};
    callback(&told, user);
  };
}

/// Calls `ask` with the machine; returns `otherwise` if there is no machine or `ask` throws.
template <typename Value, typename Ask>
Value asked(const fairlead_net_machine* machine, Value otherwise, Ask&& ask) {
  if (machine == nullptr) return otherwise;
  return c::guarded_or(otherwise, [&] { return ask(*c::meant(machine)); });
}

/// Runs a call on the machine and converts its result to C.
template <typename Call>
fairlead_status told(fairlead_net_machine* machine, Call&& call) {
  if (machine == nullptr) return c::fail_null();
  return c::guarded([&] { return c::done(call(*c::meant(machine))); });
}

/// Calls stop(machine, mode) with the mode that a program passed. C lets it pass any number, so the enum is not read as
/// such. A wrong one must not cancel operations.
template <typename Stop>
fairlead_status stopped(fairlead_net_machine* machine, const fairlead_net_stop_mode& passed, Stop&& stop) {
  std::uint32_t number = 0;
  static_assert(sizeof(number) == sizeof(passed));
  std::memcpy(&number, &passed, sizeof(number));
  if (number != FAIRLEAD_NET_DRAIN && number != FAIRLEAD_NET_ABORT)
    return c::fail(fairlead::Status::invalid, "there is no such way to stop: fairlead_net_stop_mode names them");
  const auto mode = number == FAIRLEAD_NET_DRAIN ? net::StopMode::drain : net::StopMode::abort;
  return told(machine, [&](auto& own) { return stop(own, mode); });
}

// New fields will use reserved bytes or follow them. Therefore no structure may contain padding.
static_assert(sizeof(void*) != 8 || sizeof(fairlead_net_operation) == 72);
static_assert(sizeof(void*) != 8 || sizeof(fairlead_net_provision) == 48);
static_assert(offsetof(fairlead_net_operation, reserved) + sizeof(fairlead_net_operation::reserved) ==
              sizeof(fairlead_net_operation));
static_assert(offsetof(fairlead_net_provision, reserved) + sizeof(fairlead_net_provision::reserved) ==
              sizeof(fairlead_net_provision));

/// Like c::take(), and requires the reserved bytes to be 0.
template <typename Struct>
fairlead_status take_reserving(const Struct* from, Struct& to) {
  if (const auto taken = c::take(from, to); taken != FAIRLEAD_OK) return taken;
  constexpr decltype(Struct::reserved) kNothing{};
  if (std::memcmp(&to.reserved, &kNothing, sizeof(kNothing)) == 0) return FAIRLEAD_OK;
  return c::fail(fairlead::Status::invalid,
                 "the field `reserved` is not 0: clear the structure before you fill it, for instance with {0}");
}

constexpr std::uint64_t or_all(std::uint64_t bytes) {
  return bytes != 0 ? bytes : net::kWholeBuffer;
}
constexpr std::uint32_t or_one(std::uint32_t count) {
  return count != 0 ? count : 1;
}

/// Converts the C operation and calls add() with it.
template <typename Add>
auto add_as(const fairlead_net_operation& wanted, Add&& add) {
  const fairlead::Instant deadline = wanted.deadline_ns != 0 ? c::to_instant(wanted.deadline_ns) : fairlead::kNever;
  const std::uint64_t length = or_all(wanted.length);
  const std::span descriptor(static_cast<const std::byte*>(wanted.descriptor),
                             wanted.descriptor != nullptr ? wanted.descriptor_size : 0);
  switch (wanted.queue) {
    case FAIRLEAD_NET_MESSAGE_RECEIVE:
      return add(net::MessageReceive{.size_min = or_all(wanted.size_min),
                                     .messages_max = or_one(wanted.messages_max),
                                     .deadline = deadline,
                                     .takes_loans = wanted.takes_loans});
    case FAIRLEAD_NET_MESSAGE_SEND:
      return add(
          net::MessageSend{.to = wanted.to != nullptr ? net::Destination(*c::meant(wanted.to)) : net::Destination(),
                           .length = length,
                           .deadline = deadline,
                           .is_loan = wanted.is_loan,
                           .is_confirmed = wanted.is_confirmed});
    case FAIRLEAD_NET_PASSIVE_RECEIVE:
      return add(net::PassiveReceive{.deadline = deadline});
    case FAIRLEAD_NET_PASSIVE_SEND:
      return add(net::PassiveSend{.length = length, .deadline = deadline});
    case FAIRLEAD_NET_ACTIVE_RECEIVE:
      return add(net::ActiveReceive{.descriptor = descriptor, .deadline = deadline});
    case FAIRLEAD_NET_ACTIVE_SEND:
      return add(net::ActiveSend{.descriptor = descriptor, .length = length, .deadline = deadline});
  }
  return c::fail(fairlead::Status::invalid, "there is no such queue: fairlead_net_queue names them");
}

fairlead_status add_done(fairlead::Status status) {
  return status == fairlead::Status::ok ? FAIRLEAD_OK : c::fail_add(status);
}

template <typename Handle>
bool has_null(Handle* const* handles, std::size_t count) {
  if (count == 0) return false;
  const std::span all(handles, handles != nullptr ? count : 0);
  return all.empty() || std::ranges::find(all, nullptr) != all.end();
}

std::vector<net::Buffer*> meant_of(std::span<fairlead_net_buffer* const> handles) {
  std::vector<net::Buffer*> all;
  for (fairlead_net_buffer* const handle : handles) all.push_back(c::meant(handle));
  return all;
}

fairlead_status added_as(const net::TransferMachine::Added& how, std::size_t& added) {
  added = how.count;
  return add_done(how.status);
}

net::TransferMachine::Added add_many(net::TransferMachine& machine, std::span<net::Buffer* const> buffers,
                                     const auto& operation) {
  if constexpr (requires { machine.add(buffers, operation); }) {
    return machine.add(buffers, operation);
  } else {
    const std::vector operations(buffers.size(), operation);
    return machine.add(buffers, std::span(operations));
  }
}

}  // namespace

// Before the start --------------------------------------------------------------------------------------------------

fairlead_status fairlead_net_machine_create(fairlead_net_domain* domain, fairlead_net_machine_callback callback,
                                            void* user, fairlead_net_machine** machine) {
  if (c::is_any_null(domain, machine)) return c::fail_null();
  return c::guarded([&] {
    auto made = std::make_unique<net::TransferMachine>(*c::meant(domain), adapt_machine(callback, user));
    if (made->state() == net::MachineState::undefined)
      return c::fail(fairlead::Status::bad_state, "the domain is closed, or of the process that has forked this one");
    *machine = c::handle_of<fairlead_net_machine>(made.release());
    return FAIRLEAD_OK;
  });
}

void fairlead_net_machine_free(fairlead_net_machine* machine) {
  delete c::meant(machine);
}

fairlead_status fairlead_net_machine_confine(fairlead_net_machine* machine, const unsigned* cpus, size_t count) {
  if (cpus == nullptr && count > 0) return c::fail_null();
  return told(machine, [&](auto& own) { return own.confine(std::span(cpus, count)); });
}
fairlead_status fairlead_net_machine_deliver_synchronously(fairlead_net_machine* machine) {
  return told(machine, [](auto& own) { return own.deliver_synchronously(); });
}
fairlead_status fairlead_net_machine_report_statistics(fairlead_net_machine* machine, int64_t every_ns) {
  return told(machine, [&](auto& own) { return own.report_statistics(fairlead::Duration(every_ns)); });
}

fairlead_status fairlead_net_machine_attach(fairlead_net_machine* machine, const fairlead_net_pool* pool,
                                            const fairlead_net_provision* provision) {
  if (c::is_any_null(pool, provision)) return c::fail_null();
  fairlead_net_provision wanted;
  if (const auto taken = take_reserving(provision, wanted); taken != FAIRLEAD_OK) return taken;
  return told(machine, [&](auto& own) {
    return own.attach(*c::meant(pool), {.on_event = c::adapt(wanted.callback, wanted.user),
                                        .size_min = or_all(wanted.size_min),
                                        .messages_max = or_one(wanted.messages_max),
                                        .length = wanted.length != 0 ? wanted.length : net::Provision().length,
                                        .colour = wanted.has_colour ? wanted.colour : net::kAnyColour,
                                        .takes_loans = wanted.takes_loans});
  });
}
fairlead_status fairlead_net_machine_set_receive_length(fairlead_net_machine* machine, uint32_t length) {
  return told(machine, [&](auto& own) { return own.set_receive_length(length); });
}
fairlead_status fairlead_net_machine_set_receive_colour(fairlead_net_machine* machine, uint32_t colour) {
  return told(machine, [&](auto& own) { return own.set_receive_colour(colour); });
}
uint32_t fairlead_net_machine_receive_deficit(const fairlead_net_machine* machine) {
  return asked(machine, std::uint32_t{0}, [](const auto& own) { return own.receive_deficit(); });
}

// Start and stop ----------------------------------------------------------------------------------------------------

fairlead_status fairlead_net_machine_start(fairlead_net_machine* machine, const char* address) {
  return told(machine, [&](auto& own) { return own.start(c::text_or_empty(address)); });
}
fairlead_status fairlead_net_machine_start_and_wait(fairlead_net_machine* machine, const char* address) {
  return told(machine, [&](auto& own) -> fairlead::Result<> {
    auto started = own.start_and_wait(c::text_or_empty(address));
    if (!started) return std::unexpected(std::move(started.error()));
    return {};
  });
}
fairlead_status fairlead_net_machine_stop(fairlead_net_machine* machine, fairlead_net_stop_mode mode) {
  return stopped(machine, mode, [](auto& own, net::StopMode how) { return own.stop(how); });
}
fairlead_status fairlead_net_machine_stop_and_wait(fairlead_net_machine* machine, fairlead_net_stop_mode mode) {
  return stopped(machine, mode, [](auto& own, net::StopMode how) { return own.stop_and_wait(how); });
}
fairlead_status fairlead_net_machine_close(fairlead_net_machine* machine) {
  return told(machine, [](auto& own) { return own.close(); });
}
fairlead_net_machine_state fairlead_net_machine_get_state(const fairlead_net_machine* machine) {
  return static_cast<fairlead_net_machine_state>(machine != nullptr ? c::meant(machine)->state()
                                                                    : net::MachineState::undefined);
}
fairlead_status fairlead_net_machine_failure(const fairlead_net_machine* machine, char* text, size_t size) {
  c::write_text("", text, size);
  return asked(machine, FAIRLEAD_INVALID, [&](const auto& own) {
    const fairlead::Error failure = own.failure();
    c::write_text(failure.message, text, size);
    return c::to_c(failure.status);
  });
}

fairlead_net_end_point* fairlead_net_machine_end_point(const fairlead_net_machine* machine) {
  return asked<fairlead_net_end_point*>(machine, nullptr, [](const auto& own) {
    const net::EndPoint end_point = own.end_point();
    return end_point ? fairlead_net_end_point_copy(c::handle_of<fairlead_net_end_point>(&end_point)) : nullptr;
  });
}
fairlead_status fairlead_net_machine_create_end_point(fairlead_net_machine* machine, const char* address,
                                                      fairlead_net_end_point** end_point) {
  if (c::is_any_null(machine, end_point)) return c::fail_null();
  return c::guarded([&] {
    auto made = c::meant(machine)->create_end_point(c::text_or_empty(address));
    if (!made) return c::fail(made.error());
    *end_point = c::handle_of<fairlead_net_end_point>(new net::EndPoint(std::move(*made)));
    return FAIRLEAD_OK;
  });
}
size_t fairlead_net_machine_describe(const fairlead_net_machine* machine, const fairlead_net_end_point* end_point,
                                     char* text, size_t size) {
  c::write_text("", text, size);
  if (end_point == nullptr) return 0;
  const auto describe = [&](const auto& own) { return c::write_text(own.describe(*c::meant(end_point)), text, size); };
  return asked(machine, std::size_t{0}, describe);
}
size_t fairlead_net_machine_describe_failure(const fairlead_net_machine* machine,
                                             const fairlead_net_end_point* end_point, fairlead_status status,
                                             char* text, size_t size) {
  c::write_text("", text, size);
  if (end_point == nullptr) return 0;
  const auto describe = [&](const auto& own) {
    return c::write_text(own.describe(*c::meant(end_point), static_cast<fairlead::Status>(status)), text, size);
  };
  return asked(machine, std::size_t{0}, describe);
}

// Buffers -----------------------------------------------------------------------------------------------------------

fairlead_status fairlead_net_machine_add(fairlead_net_machine* machine, fairlead_net_buffer* buffer,
                                         const fairlead_net_operation* operation) {
  if (c::is_any_null(machine, buffer, operation)) return c::fail_null();
  fairlead_net_operation wanted;
  if (const auto taken = take_reserving(operation, wanted); taken != FAIRLEAD_OK) return taken;
  return c::guarded([&] {
    return add_as(wanted,
                  [&](const auto& meant) { return add_done(c::meant(machine)->add(*c::meant(buffer), meant)); });
  });
}

fairlead_status fairlead_net_machine_add_all(fairlead_net_machine* machine, fairlead_net_buffer* const* buffers,
                                             size_t count, const fairlead_net_operation* operation, size_t* added) {
  if (added != nullptr) *added = 0;
  if (c::is_any_null(machine, operation, added) || has_null(buffers, count)) return c::fail_null();
  fairlead_net_operation wanted;
  if (const auto taken = take_reserving(operation, wanted); taken != FAIRLEAD_OK) return taken;
  return c::guarded([&] {
    const auto all = meant_of(std::span(buffers, count));
    return add_as(wanted,
                  [&](const auto& meant) { return added_as(add_many(*c::meant(machine), all, meant), *added); });
  });
}

fairlead_status fairlead_net_machine_add_transfers(fairlead_net_machine* machine, fairlead_net_buffer* const* buffers,
                                                   size_t count, const fairlead_net_operation* const* operations,
                                                   size_t* added) {
  if (added != nullptr) *added = 0;
  if (c::is_any_null(machine, added) || has_null(buffers, count) || has_null(operations, count)) return c::fail_null();
  return c::guarded([&] {
    std::vector<net::ActiveReceive> gets;
    std::vector<net::ActiveSend> puts;
    for (const fairlead_net_operation* const operation : std::span(operations, count)) {
      fairlead_net_operation wanted;
      if (const auto taken = take_reserving(operation, wanted); taken != FAIRLEAD_OK) return taken;
      const auto known = add_as(wanted, [&]<typename Operation>(const Operation& meant) {
        if constexpr (std::is_same_v<Operation, net::ActiveReceive>) gets.push_back(meant);
        if constexpr (std::is_same_v<Operation, net::ActiveSend>) puts.push_back(meant);
        return FAIRLEAD_OK;
      });
      if (known != FAIRLEAD_OK) return known;
    }
    if (gets.size() != count && puts.size() != count)
      return c::fail(fairlead::Status::invalid, "all operations must be ACTIVE_RECEIVE, or all ACTIVE_SEND");
    const auto all = meant_of(std::span(buffers, count));
    net::TransferMachine& own = *c::meant(machine);
    return added_as(gets.empty() ? own.add(all, std::span(puts)) : own.add(all, std::span(gets)), *added);
  });
}

bool fairlead_net_machine_cancel(fairlead_net_machine* machine, fairlead_net_buffer* buffer) {
  if (c::is_any_null(machine, buffer)) return false;
  return c::guarded_or(false, [&] { return c::meant(machine)->cancel(*c::meant(buffer)); });
}

uint64_t fairlead_net_machine_message_size_max(const fairlead_net_machine* machine) {
  return machine != nullptr ? c::meant(machine)->message_size_max() : 0;
}

// Synchronous delivery ----------------------------------------------------------------------------------------------

fairlead_status fairlead_net_machine_deliver_all(fairlead_net_machine* machine, size_t budget, size_t* delivered) {
  if (delivered != nullptr) *delivered = 0;
  return told(machine, [&](auto& own) {
    const auto count = own.deliver_all(budget);
    if (count && delivered != nullptr) *delivered = *count;
    return count ? fairlead::Status::ok : count.error();
  });
}
bool fairlead_net_machine_pending(fairlead_net_machine* machine) {
  return machine != nullptr && c::guarded_or(false, [&] { return c::meant(machine)->pending(); });
}
fairlead_status fairlead_net_machine_wait(fairlead_net_machine* machine, int64_t deadline_ns, bool* is_pending) {
  if (is_pending != nullptr) *is_pending = false;
  return told(machine, [&](auto& own) {
    const auto pending = own.wait(c::to_instant(deadline_ns));
    if (pending && is_pending != nullptr) *is_pending = *pending;
    return pending ? fairlead::Status::ok : pending.error();
  });
}
fairlead_status fairlead_net_wait_any(fairlead_net_machine* const* machines, size_t count, int64_t deadline_ns,
                                      size_t* index) {
  if (index == nullptr || (machines == nullptr && count > 0)) return c::fail_null();
  const std::span handles(machines, count);
  if (std::ranges::find(handles, nullptr) != handles.end()) return c::fail_null();
  return c::guarded([&] {
    std::vector<net::TransferMachine*> all;
    for (fairlead_net_machine* const handle : handles) all.push_back(c::meant(handle));
    const auto found = net::TransferMachine::wait_any(all, c::to_instant(deadline_ns));
    if (!found) return c::fail_as(found.error());
    *index = *found;
    return FAIRLEAD_OK;
  });
}
fairlead_status fairlead_net_machine_arm(fairlead_net_machine* machine, bool* is_armed) {
  if (is_armed == nullptr) return c::fail_null();
  *is_armed = false;
  return told(machine, [&](auto& own) {
    const auto armed = own.arm();
    *is_armed = armed.value_or(false);
    return armed ? fairlead::Status::ok : armed.error();
  });
}
int fairlead_net_machine_descriptor(const fairlead_net_machine* machine) {
  return machine != nullptr ? c::meant(machine)->descriptor() : -1;
}
fairlead_status fairlead_net_machine_notify(fairlead_net_machine* machine, void (*signal)(void* user), void* user) {
  if (signal == nullptr) return c::fail_null();
  return told(machine, [&](auto& own) { return own.notify([signal, user] { signal(user); }); });
}

// Figures -----------------------------------------------------------------------------------------------------------

fairlead_status fairlead_net_machine_statistics(fairlead_net_machine* machine, bool reset,
                                                fairlead_net_statistics* statistics) {
  if (machine == nullptr || (statistics == nullptr && !reset)) return c::fail_null();
  return c::guarded([&] {
    const net::Statistics all = c::meant(machine)->statistics(reset);
    fairlead_net_statistics told{};
    for (std::size_t i = 0; i < all.queues.size(); ++i) {
      const net::QueueStatistics& from = all.queues[i];
      told.queues[i] = {from.adds,        from.deletes,  from.successes, from.failures, from.time_in_queue.count(),
                        from.bytes_total, from.bytes_max};
    }
    return statistics != nullptr ? c::give(told, statistics) : FAIRLEAD_OK;
  });
}
uint64_t fairlead_net_machine_messages_dropped(const fairlead_net_machine* machine) {
  return machine != nullptr ? c::meant(machine)->messages_dropped() : 0;
}
void fairlead_net_machine_counters(const fairlead_net_machine* machine,
                                   void (*each)(const char* name, uint64_t value, void* user), void* user) {
  if (each == nullptr) return;
  asked(machine, false, [&](const auto& own) {
    for (const net::Counter& counter : own.engine_counters()) each(counter.name.c_str(), counter.value, user);
    return true;
  });
}
