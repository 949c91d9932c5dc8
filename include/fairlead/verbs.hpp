#pragma once
// RDMA verbs in user space: completion queues, queue pairs and registered memory, over any IP network (docs/verbs.md).
//
//   auto context = verbs::Context::open(verbs::devices()->front());
//   auto domain = verbs::ProtectionDomain::allocate(*context);
//   auto queue = verbs::CompletionQueue::create(*context, {.capacity = 64});
//   auto pair = verbs::QueuePair::create(*domain, {.send_queue = &*queue, .receive_queue = &*queue, ...});
//   auto theirs = verbs::exchange(socket, verbs::Invitation{pair->address(), region->remote()}.to_bytes(), deadline);
//   verbs::connect(*pair, verbs::Invitation::from_bytes(*theirs)->pair);   // or modify(): RESET -> INIT -> RTR -> RTS
//   pair->post_receive(...); pair->post_send(...); queue->poll(...);       // or queue->wait(..., deadline)
//
// Objects are handles. Objects that others depend on are shared: their dependents keep them alive, so a program may
// destroy its handles in any order. destroy() returns EBUSY if dependents still exist.

#include <fairlead/verbs/completion_queue.hpp>
#include <fairlead/verbs/connection.hpp>
#include <fairlead/verbs/device.hpp>
#include <fairlead/verbs/memory.hpp>
#include <fairlead/verbs/memory_window.hpp>
#include <fairlead/verbs/queue_pair.hpp>
#include <fairlead/verbs/types.hpp>
#include <fairlead/verbs/work_completion.hpp>
#include <fairlead/verbs/work_request.hpp>
#include <fairlead/verbs/xrc_domain.hpp>
