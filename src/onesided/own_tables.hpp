#pragma once
// The location of an engine's own tables and records.

#include "onesided/shared_tables.hpp"
#include "shm/connections.hpp"

namespace fairlead::onesided {

struct OwnTables {
  SharedTables* tables = nullptr;   // null: nothing is published
  OwnedRecords* records = nullptr;  // null: peers reach no memory outside the arena

  static OwnTables of(shm::Connections* connections) {
    if (connections == nullptr || connections->arena() == nullptr) return {};
    return {reinterpret_cast<SharedTables*>(connections->arena()->head()),
            reinterpret_cast<OwnedRecords*>(connections->records())};
  }
};

}  // namespace fairlead::onesided
