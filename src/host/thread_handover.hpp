#pragma once
// Saves what belongs to one thread of a host engine for the next program in this process, and restores it there. The
// thread does not run meanwhile.

#include <string>

#include <fairlead/error.hpp>

#include "base/file_descriptor.hpp"
#include "host/handover.hpp"
#include "host/service.hpp"
#include "host/service_state.hpp"

namespace fairlead::host {

class ThreadHandover {
 public:
  explicit ThreadHandover(Service& service) : service_(service) {}

  /// Peers of this host that share memory with an engine go on over the network, also while this thread serves; or they
  /// share memory again.
  void part_from_local_peers(bool is_parting);
  /// Returns `in_use` if a peer shares memory.
  Result<> check_parted() const;
  /// While held, nothing new goes to the network.
  void hold(bool is_held);
  /// While held: takes what arrives, and gives events to applications.
  void go_on();
  /// While held: returns whether nothing is under way.
  bool is_still() const;

  Result<> stop_engines(Handover& handover);
  /// Adds engines and applications to the state. All threads' engines have stopped.
  Result<> save(ServiceState& state, Handover& handover);
  /// Restores what belongs to this thread. Its engines' threads inherit the processors of the calling thread.
  Result<> restore(const ServiceState& state);

 private:
  Result<> restore(const ApplicationState& saved);
  Result<> restore_pairs(const ApplicationPairsState& saved, Application& application);

  Service& service_;
};

/// Takes a descriptor of the previous program, and sets close-on-exec: other programs that we start must not inherit
/// it.
base::FileDescriptor own_descriptor(int descriptor);

}  // namespace fairlead::host
