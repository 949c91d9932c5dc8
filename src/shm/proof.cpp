#include "shm/proof.hpp"

#include <span>

namespace fairlead::shm {
namespace {

enum class Part : std::uint64_t { greeting = 1, answer = 2 };

void add(base::SipHash& hash, Greeting greeting) {
  greeting.proof = 0;
  hash.add(std::as_bytes(std::span(&greeting, 1)));
}

}  // namespace

std::uint64_t proof_of_greeting(const base::SipKey& key, const Greeting& greeting) {
  base::SipHash hash(key);
  hash.add(static_cast<std::uint64_t>(Part::greeting));
  add(hash, greeting);
  return hash.value();
}

std::uint64_t proof_of_answer(const base::SipKey& key, const Greeting& answer, const Greeting& greeting) {
  base::SipHash hash(key);
  hash.add(static_cast<std::uint64_t>(Part::answer));
  add(hash, answer);
  add(hash, greeting);
  return hash.value();
}

}  // namespace fairlead::shm
