// Calls C handlers with exactly as many arguments as the message carries, and implements queries of a handler's token.

#include <algorithm>
#include <cstring>
#include <utility>

#include "doors/amudp/library.hpp"
#include "doors/amudp/spmd.hpp"

namespace fairlead::amudp {
namespace {

using Caller = void (*)(amudp_handler_fn_t function, void* token, const am::Message& message);

template <std::size_t Index>
using IntOf = int;

// AM-2 permits handlers whose parameters differ from the arguments sent, which C cannot express: no check of the type.
#ifdef __clang__
#define FAIRLEAD_ANY_FUNCTION [[clang::no_sanitize("function")]]
#else
#define FAIRLEAD_ANY_FUNCTION
#endif

template <std::size_t... Index>
FAIRLEAD_ANY_FUNCTION void call_with(amudp_handler_fn_t function, void* token, const am::Message& message,
                                     std::index_sequence<Index...>) {
  const auto& values = message.arguments;
  if (message.size == am::Size::brief) {
    reinterpret_cast<void (*)(void*, IntOf<Index>...)>(function)(token, values[Index]...);
  } else {
    reinterpret_cast<void (*)(void*, void*, size_t, IntOf<Index>...)>(function)(token, message.data.data(),
                                                                                message.data.size(), values[Index]...);
  }
}

template <std::size_t Count>
void call_with_count(amudp_handler_fn_t function, void* token, const am::Message& message) {
  call_with(function, token, message, std::make_index_sequence<Count>());
}

template <std::size_t... Count>
constexpr std::array<Caller, sizeof...(Count)> callers(std::index_sequence<Count...>) {
  return {&call_with_count<Count>...};
}

constexpr auto kCallers = callers(std::make_index_sequence<AMUDP_MAX_SHORT + 1>());

}  // namespace

void call_handler(void* context, am::Token& token, const am::Message& message) {
  const Registered& registered = *static_cast<const Registered*>(context);
  amudp_ep& endpoint = *registered.endpoint;
  HandlerToken its{token, registered.endpoint};
  const auto category = static_cast<amudp_category_t>(message.size);
  add(endpoint, (message.is_request ? endpoint.stats.RequestsReceived : endpoint.stats.RepliesReceived)[category], 1);
  if (endpoint.before != nullptr) {
    std::array<uint32_t, AMUDP_MAX_SHORT> values{};
    std::memcpy(values.data(), message.arguments.data(), message.arguments.size_bytes());
    endpoint.before(category, message.is_request, registered.index, &its, message.data.data(), message.data.size(),
                    static_cast<int>(message.arguments.size()), values.data());
  }
  kCallers[message.arguments.size()](registered.function, &its, message);
  if (endpoint.after != nullptr) endpoint.after(category, message.is_request);
}

namespace {

// The default handler 0: AM-2 requires that the process ends. The console reports the death of a rank once, with its
// cause, and ends this process, too.
void end_process(const am::Endpoint& endpoint, const am::Returned& returned) {
  const auto status = static_cast<int>(returned.refusal), op = static_cast<int>(returned.operation);
  if (returned.refusal == am::Refusal::unreachable) {
    if (worker() != nullptr && worker()->waits_for_its_end()) return;
    AMX_FatalErr("rank %u cannot be reached: %s (status %d, op %d, handler %d; there is no handler 0)",
                 returned.translation, endpoint.describe(returned.translation).c_str(), status, op, returned.handler);
  }
  AMX_FatalErr("a message came back (status %d, op %d, handler %d, translation %d) and there is no handler 0", status,
               op, returned.handler, returned.translation);
}

}  // namespace

void call_error_handler(void* context, am::Endpoint& at, const am::Returned& returned) {
  if (returned.refusal == am::Refusal::left) return;  // AM-2 has no such code, and no caller waits for the message
  amudp_ep& endpoint = *static_cast<amudp_ep*>(context);
  const bool was_request = returned.operation <= am::Operation::request_long;
  amudp_returned_t block{.translation = was_request ? static_cast<int>(returned.translation) : -1,
                         .handler = returned.handler,
                         .count = static_cast<int>(returned.arguments.size()),
                         .arguments = {},
                         .data = returned.data.data(),
                         .length = returned.data.size()};
  std::ranges::copy(returned.arguments, block.arguments);
  add(endpoint, endpoint.stats.ReturnedMessages, 1);
  if (endpoint.error_handler == nullptr) return end_process(at, returned);
  reinterpret_cast<void (*)(int, op_t, void*)>(endpoint.error_handler)(static_cast<int>(returned.refusal),
                                                                       static_cast<op_t>(returned.operation), &block);
}

}  // namespace fairlead::amudp

using namespace fairlead::amudp;

int AM_GetSourceEndpoint(void* token, en_t* name) {
  if (token == nullptr || name == nullptr) return fail(AM_ERR_BAD_ARG, "AM_GetSourceEndpoint", "no token or no place");
  *name = to_en(static_cast<HandlerToken*>(token)->token.source());
  return AM_OK;
}

int AM_GetDestEndpoint(void* token, ep_t* endpoint) {
  if (token == nullptr || endpoint == nullptr)
    return fail(AM_ERR_BAD_ARG, "AM_GetDestEndpoint", "no token or no place");
  *endpoint = static_cast<HandlerToken*>(token)->endpoint;
  return AM_OK;
}

int AM_GetMsgTag(void* token, tag_t* tag) {
  if (token == nullptr || tag == nullptr) return fail(AM_ERR_BAD_ARG, "AM_GetMsgTag", "no token or no place");
  *tag = static_cast<HandlerToken*>(token)->token.tag();
  return AM_OK;
}

int AMUDP_GetSourceId(void* token, int* index) {
  if (token == nullptr || index == nullptr) return fail(AM_ERR_BAD_ARG, "AMX_GetSourceId", "no token or no place");
  std::uint32_t found = 0;
  if (!static_cast<HandlerToken*>(token)->token.source_index(found))
    return fail(AM_ERR_RESOURCE, "AMX_GetSourceId", "the source is not in the translation table");
  *index = static_cast<int>(found);
  return AM_OK;
}

int AMUDP_enEqual(en_t one, en_t other) {
  return from_en(one) == from_en(other);
}
