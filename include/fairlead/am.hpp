#pragma once
// Active messages: a request runs a handler at another endpoint, and the handler may reply (AM-2; docs/am.md).
//
// Model. A Domain is an address on the network. A Bundle of a domain is the unit of polling and waiting, and owns
// Endpoints. An Endpoint has a name, a table of 256 handlers and a table of peers (translations). Its tag decides who
// may send to it. Its segment is the memory that long messages write to. A request names a translation and runs a
// handler there; that handler may reply once. A request that the peer refuses returns to handler 0 of its sender.
//
//   kind     data                                                handler gets
//   short    none                                                up to 16 arguments
//   medium   up to kMaxMedium bytes, in a temporary buffer       the buffer, and arguments
//   long     up to kMaxLong bytes, placed in the segment         the place, and arguments
//
// Handlers run inside poll(), wait() and requests that wait for a credit. They run in a thread of the library only if
// the bundle is in interrupt mode. At most `depth` requests to one peer are outstanding. A reply returns the credit of
// its request; if a handler does not reply, the library sends an empty reply. Messages may arrive in any order.
//
// Thread rules. BundleMode::sequential: the caller serialises all calls on the bundle and its endpoints.
// BundleMode::parallel: any thread may call anything, and handlers may run in several threads at once.

#include <fairlead/am/bundle.hpp>
#include <fairlead/am/domain.hpp>
#include <fairlead/am/endpoint.hpp>
#include <fairlead/am/handler.hpp>
#include <fairlead/am/name.hpp>
#include <fairlead/am/typed.hpp>
