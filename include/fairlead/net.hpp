#pragma once
// Messages and bulk transfer with completion events, the face of Motr's network transport (docs/net.md).
//
// Model. A Domain holds settings. A Buffer of the domain is memory. A TransferMachine of the domain has an address; one
// adds buffers to its queues, and each buffer that was added comes back in exactly one final event. EndPoint names
// another transfer machine.
//
//   queue                   what a buffer there does                                        its partner
//   message_receive         takes messages of any sender, one after the other               message_send
//   message_send            is sent as one message to an end point                          message_receive
//   passive_bulk_receive    is written by whoever was given its descriptor                  active_bulk_send
//   passive_bulk_send       is read by whoever was given its descriptor                     active_bulk_receive
//   active_bulk_receive     fetches what a descriptor names                                 passive_bulk_send
//   active_bulk_send        fills what a descriptor names                                   passive_bulk_receive
//
// Thread rules. Every call may come from any thread, also from inside a callback, unless its description says
// otherwise. A transfer machine's callbacks run one at a time and without any of its locks. Between add() and the final
// event the memory belongs to the transfer machine (see BufferEvent::is_final for the one thing that may be read
// earlier).

#include <fairlead/net/address.hpp>
#include <fairlead/net/buffer.hpp>
#include <fairlead/net/buffer_pool.hpp>
#include <fairlead/net/descriptor.hpp>
#include <fairlead/net/domain.hpp>
#include <fairlead/net/end_point.hpp>
#include <fairlead/net/event.hpp>
#include <fairlead/net/invitation.hpp>
#include <fairlead/net/loan.hpp>
#include <fairlead/net/queue_kind.hpp>
#include <fairlead/net/statistics.hpp>
#include <fairlead/net/transfer_machine.hpp>
