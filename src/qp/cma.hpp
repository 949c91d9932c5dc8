#pragma once
// Writes and reads of reliable queue pairs in memory of an engine of this host that lies outside what it publishes, by
// system calls (cross-memory attach, shm/cross_memory.hpp), so that nobody there has to run.
//
// All peers of the owner can write to the tables in its arena, so nothing of them is believed here: queue pair and
// region are looked up in the owner's own records. We are in a read section meanwhile, which the page of the two tells
// and nobody else can change: what it withdraws before we look we find withdrawn, and for what we have begun it waits.
//
// If a call fails the request is sent: the responder does all of it (again), or says what is wrong.

#include <span>

#include <sys/uio.h>

#include "qp/queue_pair.hpp"
#include "qp/shared.hpp"
#include "shm/connection.hpp"

namespace fairlead::qp {

/// False: it has to be sent, though some of it may have been written.
bool carry_out_by_calls(Shared& shared, const QueuePair& pair, const SendEntry& entry, shm::Connection& peer,
                        std::span<const iovec> pieces);

}  // namespace fairlead::qp
