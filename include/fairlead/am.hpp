#pragma once
// Active messages: requests that run a handler at another endpoint, and its reply (AM-2; docs/am.md).
//
// Model. A Domain is a place on the network. A Bundle of it is the unit of polling and waiting. Its Endpoints have a
// name, a table of 256 handlers, a table of peers (translations), a tag that says who may send to them, and a segment
// that long messages write to. A request goes to a translation and runs a handler there; the handler may reply once. A
// request that is not taken comes back to handler 0 of its sender.
//
//   kind     data                                                handler gets
//   short    none                                                up to 16 arguments
//   medium   up to kMaxMedium bytes, in a temporary buffer       the buffer, and arguments
//   long     up to kMaxLong bytes, placed in the segment         the place, and arguments
//
// Handlers run inside poll(), wait() and requests that wait for a credit, never in a thread of the library, unless the
// bundle was switched to interrupt mode. At most `depth` requests to one peer are outstanding; each is given back by
// its reply (an empty one is sent for a handler that does not reply). Order is not promised.
//
// Thread rules. BundleMode::sequential: the caller serialises all calls on the bundle and its endpoints.
// BundleMode::parallel: any thread may call anything, and handlers may run in several threads at once.

#include <fairlead/am/bundle.hpp>
#include <fairlead/am/domain.hpp>
#include <fairlead/am/endpoint.hpp>
#include <fairlead/am/handler.hpp>
#include <fairlead/am/name.hpp>
#include <fairlead/am/typed.hpp>
