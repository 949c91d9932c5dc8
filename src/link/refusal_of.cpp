#include "link/refusal_of.hpp"

namespace fairlead::link {

Refusal refusal_of(seal::Refused refused) {
  switch (refused) {
    case seal::Refused::other_kind:
      return Refusal::other_kind;
    case seal::Refused::wrong_secret:
      return Refusal::wrong_secret;
    case seal::Refused::wrong_key:
      return Refusal::wrong_key;
    case seal::Refused::unknown_key:
      return Refusal::unknown_key;
    case seal::Refused::cannot_seal:
      return Refusal::cannot_seal;
    default:
      return Refusal::not_sealed;
  }
}

}  // namespace fairlead::link
