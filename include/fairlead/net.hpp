#pragma once
// Messages and bulk transfers with completion events, in the style of Motr's network transport (docs/net.md).
//
// Model. A Domain holds settings. A Buffer of the domain is memory. A TransferMachine of the domain has an address. The
// program adds buffers to its queues; each added buffer returns to the program in exactly one final event. An EndPoint
// names another transfer machine.
//
//   queue                   what a buffer in it does                                        its partner
//   message_receive         receives messages from any sender, one after the other          message_send
//   message_send            is sent as one message to an end point                          message_receive
//   passive_bulk_receive    is written by the holder of its descriptor                      active_bulk_send
//   passive_bulk_send       is read by the holder of its descriptor                         active_bulk_receive
//   active_bulk_receive     reads the buffer that a descriptor names                        passive_bulk_send
//   active_bulk_send        writes the buffer that a descriptor names                       passive_bulk_receive
//
// Thread rules. Any thread may make any call, also inside a callback, unless the description says otherwise. A transfer
// machine runs its callbacks one at a time, without holding a lock. Between add() and the final event the memory
// belongs to the transfer machine. BufferEvent::is_final describes the one exception.

#include <fairlead/net/address.hpp>
#include <fairlead/net/buffer.hpp>
#include <fairlead/net/buffer_pool.hpp>
#include <fairlead/net/descriptor.hpp>
#include <fairlead/net/domain.hpp>
#include <fairlead/net/end_point.hpp>
#include <fairlead/net/event.hpp>
#include <fairlead/net/invitation.hpp>
#include <fairlead/net/loan.hpp>
#include <fairlead/net/peer_facts.hpp>
#include <fairlead/net/queue_kind.hpp>
#include <fairlead/net/statistics.hpp>
#include <fairlead/net/transfer_machine.hpp>
