// Requests and replies: variadic functions, and va_list functions for libraries on top.

#include <cstdarg>

#include "doors/amudp/library.hpp"

using namespace fairlead::amudp;
using fairlead::Status;

namespace {

constexpr std::uint64_t kHeaderBytes = 48;

struct Arguments {
  std::array<fairlead::am::Argument, AMUDP_MAX_SHORT> values{};
  std::size_t count = 0;
  bool is_good = false;

  Arguments(int wanted, va_list list) {
    is_good = wanted >= 0 && wanted <= AMUDP_MAX_SHORT;
    for (; is_good && count < static_cast<std::size_t>(wanted); ++count) values[count] = va_arg(list, int);
  }
  std::span<const fairlead::am::Argument> all() const { return std::span(values).first(count); }
};

std::span<const std::byte> bytes_of(const void* data, size_t length) {
  return {static_cast<const std::byte*>(data), length};
}

void count(amudp_ep& endpoint, amudp_category_t category, bool is_request, std::size_t bytes) {
  amudp_stats_t& stats = endpoint.stats;
  add(endpoint, (is_request ? stats.RequestsSent : stats.RepliesSent)[category], 1);
  add(endpoint, (is_request ? stats.RequestDataBytesSent : stats.ReplyDataBytesSent)[category], bytes);
  add(endpoint, (is_request ? stats.RequestTotalBytesSent : stats.ReplyTotalBytesSent)[category], bytes + kHeaderBytes);
  add(endpoint, stats.TotalBytesSent, bytes + kHeaderBytes);
}

const char* why(Status status) {
  switch (status) {
    case Status::not_available:
      return "nothing is mapped at that index";
    case Status::bad_state:
      return "not in a handler, and a reply only once in the handler of a request";
    case Status::again:
      return "no credit is free";
    default:
      return "more data, arguments or translations than there may be, or handler 0";
  }
}

template <typename Send>
int request(const char* call, ep_t from, amudp_category_t category, const void* data, size_t length, int wanted,
            va_list list, Send&& send) {
  const Arguments arguments(wanted, list);
  if (from == nullptr || !arguments.is_good || (data == nullptr && length != 0))
    return fail(AM_ERR_BAD_ARG, call, "want an endpoint, at most 16 arguments, and data if there is a length");
  const Status status = send(*from->endpoint, arguments.all());
  if (status != Status::ok) return fail(code_of(status), call, why(status));
  count(*from, category, true, length + arguments.all().size_bytes());
  return AM_OK;
}

template <typename Send>
int reply(const char* call, void* token, amudp_category_t category, const void* data, size_t length, int wanted,
          va_list list, Send&& send) {
  const Arguments arguments(wanted, list);
  if (token == nullptr || !arguments.is_good || (data == nullptr && length != 0))
    return fail(AM_ERR_BAD_ARG, call, "want a token, at most 16 arguments, and data if there is a length");
  auto& its = *static_cast<HandlerToken*>(token);
  const Status status = send(its.token, arguments.all());
  if (status != Status::ok) return fail(code_of(status), call, why(status));
  count(*its.endpoint, category, false, length + arguments.all().size_bytes());
  return AM_OK;
}

}  // namespace

int AMUDP_RequestVA(ep_t from, amudp_node_t to, handler_t handler, int count, va_list list) {
  return request("AM_Request", from, amudp_Short, nullptr, 0, count, list,
                 [&](auto& endpoint, auto arguments) { return endpoint.request(to, handler, arguments); });
}

int AMUDP_RequestIVA(ep_t from, amudp_node_t to, handler_t handler, void* data, size_t length, int count,
                     va_list list) {
  return request("AM_RequestI", from, amudp_Medium, data, length, count, list, [&](auto& endpoint, auto arguments) {
    return endpoint.request_medium(to, handler, bytes_of(data, length), arguments);
  });
}

int AMUDP_RequestXferVA(ep_t from, amudp_node_t to, handler_t handler, void* data, size_t length, uintptr_t offset,
                        int is_async, int count, va_list list) {
  return request("AM_RequestXfer", from, amudp_Long, data, length, count, list, [&](auto& endpoint, auto arguments) {
    return is_async ? endpoint.request_long_async(to, offset, handler, bytes_of(data, length), arguments)
                    : endpoint.request_long(to, offset, handler, bytes_of(data, length), arguments);
  });
}

int AMUDP_ReplyVA(void* token, handler_t handler, int count, va_list list) {
  return reply("AM_Reply", token, amudp_Short, nullptr, 0, count, list,
               [&](auto& its, auto arguments) { return its.reply(handler, arguments); });
}

int AMUDP_ReplyIVA(void* token, handler_t handler, void* data, size_t length, int count, va_list list) {
  return reply("AM_ReplyI", token, amudp_Medium, data, length, count, list,
               [&](auto& its, auto arguments) { return its.reply_medium(handler, bytes_of(data, length), arguments); });
}

int AMUDP_ReplyXferVA(void* token, handler_t handler, void* data, size_t length, uintptr_t offset, int count,
                      va_list list) {
  return reply("AM_ReplyXfer", token, amudp_Long, data, length, count, list, [&](auto& its, auto arguments) {
    return its.reply_long(offset, handler, bytes_of(data, length), arguments);
  });
}

int AMUDP_Request(ep_t from, amudp_node_t to, handler_t handler, int count, ...) {
  va_list list;
  va_start(list, count);
  const int code = AMUDP_RequestVA(from, to, handler, count, list);
  va_end(list);
  return code;
}

int AMUDP_RequestI(ep_t from, amudp_node_t to, handler_t handler, void* data, size_t length, int count, ...) {
  va_list list;
  va_start(list, count);
  const int code = AMUDP_RequestIVA(from, to, handler, data, length, count, list);
  va_end(list);
  return code;
}

int AMUDP_RequestXfer(ep_t from, amudp_node_t to, handler_t handler, void* data, size_t length, uintptr_t offset,
                      int is_async, int count, ...) {
  va_list list;
  va_start(list, count);
  const int code = AMUDP_RequestXferVA(from, to, handler, data, length, offset, is_async, count, list);
  va_end(list);
  return code;
}

int AMUDP_GetXfer(ep_t from, amudp_node_t to, uintptr_t source_offset, handler_t handler, uintptr_t offset,
                  size_t length, int is_async, int count, ...) {
  va_list list;
  va_start(list, count);
  const int code =
      request("AM_GetXfer", from, amudp_Short, nullptr, 0, count, list, [&](auto& endpoint, auto arguments) {
        return endpoint.get(to, source_offset, handler, offset, length, arguments, is_async != 0);
      });
  va_end(list);
  return code;
}

int AMUDP_Reply(void* token, handler_t handler, int count, ...) {
  va_list list;
  va_start(list, count);
  const int code = AMUDP_ReplyVA(token, handler, count, list);
  va_end(list);
  return code;
}

int AMUDP_ReplyI(void* token, handler_t handler, void* data, size_t length, int count, ...) {
  va_list list;
  va_start(list, count);
  const int code = AMUDP_ReplyIVA(token, handler, data, length, count, list);
  va_end(list);
  return code;
}

int AMUDP_ReplyXfer(void* token, handler_t handler, void* data, size_t length, uintptr_t offset, int count, ...) {
  va_list list;
  va_start(list, count);
  const int code = AMUDP_ReplyXferVA(token, handler, data, length, offset, count, list);
  va_end(list);
  return code;
}
