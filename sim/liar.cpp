#include "sim/liar.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <iterator>
#include <utility>
#include <vector>

#include "wire/pair_words.hpp"
#include "wire/shm_record.hpp"

namespace fairlead::sim {
namespace {

using shm::Connection;
using shm::PairSide;

constexpr std::uint64_t kSharedWordMost = ~std::uint64_t{0};  // of a word over a peer's tables
constexpr std::size_t kPayloadMost = 2000;
constexpr int kOffences = 6;

shm::PairPage& page_of(const Connection& to) {
  return *reinterpret_cast<shm::PairPage*>(to.memory.head());
}
PairSide& theirs(const Connection& to) {
  shm::PairPage& page = page_of(to);
  return to.own == &page.sides[0] ? page.sides[1] : page.sides[0];
}

void publish(Connection& to, std::size_t bytes, std::uint64_t passed) {
  to.writer.publish(bytes, passed);
  to.ring();
}

}  // namespace

Connection* Liar::pick_peer(shm::Connections& own) {
  std::vector<Connection*> open;
  for (std::uint32_t slot = 0; slot < own.peers().size(); ++slot)
    if (own.peer(slot).state == Connection::State::open) open.push_back(&own.peer(slot));
  return open.empty() ? nullptr : open[random_.below(open.size())];
}

std::optional<Offence> Liar::lie(shm::Connections& own, const PairSecrets& secrets) {
  Connection* const to = pick_peer(own);
  if (to == nullptr) return std::nullopt;
  ++told_;
  PairSecrets of_victim;
  std::ranges::copy_if(secrets, std::back_inserter(of_victim),
                       [&](const PairSecret& secret) { return secret.victim == to->address; });
  if (!of_victim.empty() && random_.chance(0.5)) {
    forge_for_pair(*to, of_victim[random_.below(of_victim.size())]);
    return std::nullopt;
  }
  const std::size_t ring_bytes = to->reader.lines() * shm::kRingLine;
  switch (random_.below(10)) {
    case 0:
      damage(*to);
      scribble({to->memory.head(), sizeof(shm::PairPage)});
      break;
    case 1:
      damage(*to);
      scribble({to->memory.ring(random_.below(2)), ring_bytes});
      break;
    case 2:
      misreport(*to);
      break;
    case 3:
    case 4:
      forge_record(*to);
      break;
    case 5:
      to->doorbell.ring(static_cast<std::uint32_t>(random_.below(shm::DoorbellPage::kBits)));
      break;
    case 6:
      if (own.arena() != nullptr)
        scribble_over_tables(*reinterpret_cast<onesided::SharedTables*>(own.arena()->head()), 2 * own.arena()->bytes());
      break;
    case 7:
      if (to->arena_bytes != 0)
        scribble_over_tables(*reinterpret_cast<onesided::SharedTables*>(to->arena->head()), kSharedWordMost);
      break;
    case 8:
      claim_use(*to);
      break;
    default:
      if (offend(*to) && !is_damaged(*to)) return Offence{to->address, to->writer.written()};
      break;
  }
  to->ring();
  return std::nullopt;
}

/// Writes a record that no engine would write. Returns false if there is no room.
bool Liar::offend(Connection& to) {
  constexpr wire::Envelope kAny{.target_port = 0, .key = 1, .offset = 1};
  const std::size_t bytes = wire::shm_head_bytes(wire::ShmKind::by_reference);
  std::byte* const body = to.writer.reserve(bytes);
  if (body == nullptr) return false;
  std::memset(body, 0, bytes);
  switch (random_.below(kOffences)) {
    case 0: {  // of no kind
      wire::encode_shm(body, wire::ShmKind::inlined, kAny, 0);
      body[0] = static_cast<std::byte>(random_.chance(0.5) ? 0 : random_.between(10, 255));
      publish(to, bytes, to.reader.read());
      break;
    }
    case 1: {  // longer than the ring
      wire::encode_shm(body, wire::ShmKind::inlined, kAny, 0);
      to.writer.publish(bytes, to.reader.read());
      const auto length = static_cast<std::uint32_t>(to.reader.lines() * shm::kRingLine + random_.below(1 << 20));
      std::memcpy(body - sizeof(std::uint64_t), &length, sizeof length);
      to.ring();
      break;
    }
    case 2: {  // reports progress beyond what was written
      wire::encode_shm(body, wire::ShmKind::inlined, kAny, 0);
      publish(to, bytes, to.reader.read() + to.reader.lines() + random_.between(1, 1 << 20));
      break;
    }
    case 3: {  // a message that lies outside the sender's memory
      const std::uint64_t size = random_.between(1, 1 << 20);
      const std::uint64_t place = random_.chance(0.5)
                                      ? random_.next() | std::uint64_t{1} << 50
                                      : to.arena_bytes + random_.below(1 << 20) + (std::uint64_t{1} << 41);
      wire::encode_shm(body, wire::ShmKind::by_reference, kAny, size, place, random_.next());
      publish(to, bytes, to.reader.read());
      break;
    }
    case 4: {  // a batch whose last message exceeds the record
      wire::encode_shm(body, wire::ShmKind::batch, kAny, 0);
      const auto length = static_cast<wire::ShmLength>(random_.between(bytes, 0xFFFF));
      std::memcpy(body + sizeof(wire::ShmHead), &length, sizeof length);
      publish(to, bytes, to.reader.read());
      break;
    }
    default:  // shorter than its head
      wire::encode_shm(body, wire::ShmKind::whole, kAny, 0);
      publish(to, random_.below(wire::shm_head_bytes(wire::ShmKind::whole)), to.reader.read());
      break;
  }
  return true;
}

/// Writes a record of any kind with random content, some of it plausible.
void Liar::forge_record(Connection& to) {
  const auto kind = static_cast<wire::ShmKind>(random_.between(1, std::to_underlying(wire::kShmKindLast)));
  const std::size_t before = wire::shm_head_bytes(kind), payload = random_.mostly_small(0, kPayloadMost);
  std::byte* const body = to.writer.reserve(before + payload);
  if (body == nullptr) return;
  const auto any_word = [&] { return random_.chance(0.5) ? random_.below(64) : random_.next(); };
  const wire::Envelope envelope{.operation = static_cast<wire::Operation>(random_.below(24)),
                                .status = static_cast<std::uint8_t>(random_.next()),
                                .flags = static_cast<std::uint16_t>(random_.next()),
                                .source_port = static_cast<std::uint32_t>(any_word()),
                                .target_port = static_cast<std::uint32_t>(any_word()),
                                .key = any_word(),
                                .cookie = any_word(),
                                .offset = any_word(),
                                .a = any_word()};
  wire::encode_shm(body, kind, envelope, random_.mostly_small(0, ~std::uint64_t{0} - 1), any_word(), any_word());
  for (std::size_t i = 0; i < payload; ++i) body[before + i] = static_cast<std::byte>(random_.next());
  publish(to, before + payload, to.reader.read());
}

/// Writes a request or an answer that the victim would take from its queue pair's partner.
void Liar::forge_for_pair(Connection& to, const PairSecret& secret) {
  constexpr std::uint64_t kIncarnationMost = 2, kSequencesAround = 4;
  const bool is_answer = random_.chance(0.5);
  const auto request = static_cast<wire::Operation>(random_.between(std::to_underlying(wire::Operation::pair_send),
                                                                    std::to_underlying(wire::Operation::pair_atomic)));
  const auto operation = is_answer ? wire::Operation::pair_answer : request;
  const auto with_incarnation = [&](std::uint32_t number) {
    return wire::encode(wire::PairPort{number, static_cast<std::uint8_t>(random_.between(1, kIncarnationMost))});
  };
  const auto sequence = static_cast<std::uint32_t>(secret.sequence + random_.below(kSequencesAround));
  const std::size_t payload = random_.mostly_small(0, std::min<std::uint64_t>(kPayloadMost, secret.bytes));
  const wire::Envelope envelope{.operation = operation,
                                .flags = static_cast<std::uint16_t>(random_.below(4)),
                                .source_port = is_answer ? secret.source : with_incarnation(secret.source),
                                .target_port = is_answer ? with_incarnation(secret.target) : secret.target,
                                .key = wire::encode(wire::RequestKey{{sequence}, secret.rkey}),
                                .cookie = random_.next(),
                                .offset = secret.address + random_.below(secret.bytes - payload + 1),
                                .a = operation == wire::Operation::pair_read ? payload : random_.next()};
  const bool has_payload = operation == wire::Operation::pair_send || operation == wire::Operation::pair_write;
  const std::size_t before = wire::shm_head_bytes(wire::ShmKind::whole), after = has_payload ? payload : 0;
  std::byte* const body = to.writer.reserve(before + after);
  if (body == nullptr) return;
  wire::encode_shm(body, wire::ShmKind::whole, envelope, after);
  for (std::size_t i = 0; i < after; ++i) body[before + i] = static_cast<std::byte>(random_.next());
  publish(to, before + after, to.reader.read());
}

void Liar::scribble(std::span<std::byte> memory) {
  for (std::uint64_t left = random_.between(1, 16); left > 0; --left) {
    const std::size_t at = random_.below(memory.size() / sizeof(std::uint64_t)) * sizeof(std::uint64_t);
    const std::array<std::uint64_t, 4> words{random_.next(), 0, ~std::uint64_t{0}, random_.below(1 << 16)};
    std::memcpy(memory.data() + at, &words[random_.below(words.size())], sizeof words[0]);
  }
}

/// Writes over some words of an entry in use, if it finds one.
void Liar::scribble_over_tables(onesided::SharedTables& tables, std::uint64_t word_most) {
  const auto over = [&](auto& entries, std::size_t looks) {
    using Entry = std::remove_cvref_t<decltype(entries[0])>;
    const std::size_t first = random_.chance(0.5) ? 0 : random_.below(entries.size());
    for (std::size_t i = 0; i < looks; ++i) {
      auto* const entry = reinterpret_cast<std::byte*>(&entries[(first + i) % entries.size()]);
      const std::span<std::byte> bytes(entry, sizeof(Entry));
      if (std::ranges::all_of(bytes, [](std::byte byte) { return byte == std::byte{}; })) continue;
      for (std::uint64_t left = random_.between(1, 4); left > 0; --left) {
        const std::size_t at = random_.below(sizeof(Entry) / sizeof(std::uint64_t)) * sizeof(std::uint64_t);
        const std::uint64_t word = word_most == ~std::uint64_t{0} ? random_.next() : random_.mostly_small(0, word_most);
        std::memcpy(entry + at, &word, sizeof word);
      }
      return;
    }
  };
  switch (random_.below(3)) {
    case 0:
      return over(tables.regions, 256);
    case 1:
      return over(tables.pairs, 1024);
    default:
      return over(tables.exposures, tables.exposures.size());
  }
}

/// Claims to use something of the peer's memory; it may never have heard of it.
void Liar::claim_use(Connection& to) {
  const std::uint64_t key = random_.next();
  const std::array<std::uint64_t, 4> words{
      0, key, shm::Use::of_exposure(key).name(),
      shm::Use::of_region(static_cast<std::uint32_t>(random_.below(4)), static_cast<std::uint32_t>(random_.below(8)))
          .name()};
  to.own->at.store(words[random_.below(words.size())] | random_.next() << shm::Use::kTurnShift);
}

/// Writes a wrong value into one of its own words in the pair's page, or revokes a ticket.
void Liar::misreport(Connection& to) {
  PairSide& own = *to.own;
  switch (random_.below(6)) {
    case 0:
      own.passed.store(to.reader.read() + random_.mostly_small(1, std::uint64_t{1} << 40));
      break;
    case 1:
      own.passed.store(random_.below(to.reader.read() + 1));
      break;
    case 2:
      own.is_watching.store(static_cast<std::uint32_t>(random_.below(2)));
      break;
    case 3:
      own.sees.store(static_cast<std::uint32_t>(random_.next()));
      break;
    case 4:
      own.farewell.store(static_cast<std::uint32_t>(random_.below(5)));
      break;
    default:
      (random_.chance(0.5) ? own : theirs(to))
          .tickets[random_.below(shm::Tickets::kCount)]
          .store(static_cast<std::uint32_t>(random_.next()));
      break;
  }
}

}  // namespace fairlead::sim
