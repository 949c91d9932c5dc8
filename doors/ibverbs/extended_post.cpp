// Extended queue pairs: a program builds requests by calls between wr_start() and wr_complete(), which posts them
// together. Builders cannot fail. wr_complete() returns the first error and then posts nothing.
#include <cstring>
#include <new>

#include "doors/ibverbs/absent.hpp"
#include "doors/ibverbs/operations.hpp"

namespace fairlead::ibverbs {
namespace {

/// Returns the queue pair if this thread is between wr_start() and wr_complete(), else null: a builder then does
/// nothing. A thread in between keeps the queue pair from being destroyed.
Pair* pair_of(ibv_qp_ex* abi) {
  const Call call;
  Pair* pair = table<Pair>().find(abi);
  return pair != nullptr && pair->bracket.is_mine() ? pair : nullptr;
}

/// Runs a builder. wr_complete() reports a lack of memory.
template <typename Build>
void build(Staged& staged, Build&& one) noexcept try {
  one();
} catch (const std::bad_alloc&) {
  staged.error = ENOMEM;
}

void add_to(Staged& staged, const ibv_qp_ex* abi, const verbs::SendRequest& request) {
  Staged::Piece& piece = staged.pieces.emplace_back();
  piece.request = request;
  piece.request.id = abi->wr_id;
  piece.request.flags = abi->wr_flags;
  piece.sge_first = staged.sges.size();
  piece.inline_first = staged.inlined.size();
}

void add(ibv_qp_ex* abi, const verbs::SendRequest& request) {
  if (Pair* pair = pair_of(abi); pair != nullptr) build(pair->staged, [&] { add_to(pair->staged, abi, request); });
}

void spoil(ibv_qp_ex* abi, int error) {
  if (Pair* pair = pair_of(abi); pair != nullptr) pair->staged.error = error;
}

Staged::Piece* last(Pair* pair) {
  if (pair == nullptr) return nullptr;
  if (!pair->staged.pieces.empty()) return &pair->staged.pieces.back();
  if (pair->staged.error == 0) pair->staged.error = EINVAL;  // a setter was called before any builder
  return nullptr;
}

void start(ibv_qp_ex* abi) {
  const Call call;
  Pair* pair = table<Pair>().find(abi);
  if (pair == nullptr) return;
  if (!pair->bracket.is_mine()) pair->bracket.enter();
  if (!table<Pair>().is_live(pair)) return pair->bracket.leave();  // it was destroyed while this thread waited
  pair->staged.pieces.clear();
  pair->staged.sges.clear();
  pair->staged.inlined.clear();
  pair->staged.requests.clear();
  pair->staged.error = 0;
}

int post_staged(Pair& pair) try {
  Staged& staged = pair.staged;
  if (staged.error != 0) return staged.error;
  // The vectors do not move from here on, so pointers into them are valid. Each piece of inline data needs a list
  // entry.
  const std::size_t sge_count = staged.sges.size();
  for (Staged::Piece& piece : staged.pieces) {
    if (piece.inline_length == 0) continue;
    staged.sges.push_back({.addr = reinterpret_cast<std::uint64_t>(&staged.inlined[piece.inline_first]),
                           .length = static_cast<std::uint32_t>(piece.inline_length)});
  }
  std::size_t next_inline = sge_count;
  for (Staged::Piece& piece : staged.pieces) {
    const bool is_inline = piece.inline_length != 0;
    const std::size_t first = is_inline ? next_inline++ : piece.sge_first;
    if (piece.to) piece.request.to = &*piece.to;
    if (piece.binding) piece.request.binding = &*piece.binding;
    piece.request.sges = std::span(staged.sges).subspan(first, is_inline ? 1 : piece.sge_count);
    staged.requests.push_back(piece.request);
  }
  if (staged.requests.empty()) return 0;
  return pair.native->post_send_all(staged.requests);
} catch (const std::bad_alloc&) {
  return ENOMEM;
}

int complete(ibv_qp_ex* abi) {
  const Call call;
  Pair* pair = table<Pair>().find(abi);
  if (pair == nullptr || !pair->bracket.is_mine()) return fail(EINVAL);
  const int code = post_staged(*pair);
  pair->bracket.leave();
  return code == 0 ? 0 : fail(code);
}

void abort(ibv_qp_ex* abi) {
  const Call call;
  if (Pair* pair = table<Pair>().find(abi); pair != nullptr) pair->bracket.leave();
}

void set_sge_list(ibv_qp_ex* abi, std::size_t count, const ibv_sge* list) {
  Pair* pair = pair_of(abi);
  Staged::Piece* piece = last(pair);
  if (piece == nullptr) return;
  Staged& staged = pair->staged;
  piece->sge_first = staged.sges.size();
  piece->sge_count = count;
  build(staged, [&] {
    for (std::size_t i = 0; i < count; ++i) staged.sges.push_back({list[i].addr, list[i].length, list[i].lkey});
  });
}

void set_sge(ibv_qp_ex* abi, std::uint32_t lkey, std::uint64_t address, std::uint32_t length) {
  const ibv_sge sge{address, length, lkey};
  set_sge_list(abi, 1, &sge);
}

void set_inline_list(ibv_qp_ex* abi, std::size_t count, const ibv_data_buf* list) {
  Pair* pair = pair_of(abi);
  Staged::Piece* piece = last(pair);
  if (piece == nullptr) return;
  std::size_t length = 0;
  for (std::size_t i = 0; i < count; ++i) {
    length += list[i].length;
    if (length > pair->native->capacity().max_inline) {
      pair->staged.error = EINVAL;
      return;
    }
  }
  std::vector<std::byte>& inlined = pair->staged.inlined;
  piece->inline_first = inlined.size();
  piece->inline_length = length;
  piece->request.flags |= verbs::send_flags::inlined;
  build(pair->staged, [&] {
    for (std::size_t i = 0; i < count; ++i) {
      const auto* bytes = static_cast<const std::byte*>(list[i].addr);
      inlined.insert(inlined.end(), bytes, bytes + list[i].length);
    }
  });
}

void set_inline(ibv_qp_ex* abi, void* data, std::size_t length) {
  const ibv_data_buf buffer{data, length};
  set_inline_list(abi, 1, &buffer);
}

void set_ud_address(ibv_qp_ex* abi, ibv_ah* ah, std::uint32_t qpn, std::uint32_t qkey) {
  const Call call;
  Pair* pair = pair_of(abi);
  Staged::Piece* piece = last(pair);
  if (piece == nullptr) return;
  const Address* address = find(ah);
  if (address == nullptr) {
    pair->staged.error = EINVAL;
    return;
  }
  piece->to = address->native.vector();
  piece->request.remote_qpn = qpn;
  piece->request.remote_qkey = qkey;
}

void add_binding(ibv_qp_ex* abi, ibv_mw* window, std::uint32_t key, const ibv_mw_bind_info* wanted) {
  const Call call;
  add(abi, {.opcode = verbs::SendOpcode::bind_window});
  Pair* pair = pair_of(abi);
  Staged::Piece* piece = last(pair);
  if (piece == nullptr) return;
  piece->binding.emplace();
  const int error = wanted != nullptr ? read_binding(window, key, *wanted, *piece->binding) : EINVAL;
  if (error != 0) pair->staged.error = error;
}

}  // namespace

void set_operations(Pair& pair) {
  pair.wr_start = start;
  pair.wr_complete = complete;
  pair.wr_abort = abort;
  pair.wr_set_sge = set_sge;
  pair.wr_set_sge_list = set_sge_list;
  pair.wr_set_inline_data = set_inline;
  pair.wr_set_inline_data_list = set_inline_list;
  pair.wr_set_ud_addr = set_ud_address;
  pair.wr_set_xrc_srqn = [](ibv_qp_ex* abi, std::uint32_t number) {
    if (Staged::Piece* piece = last(pair_of(abi)); piece != nullptr) piece->request.remote_srqn = number;
  };

  using verbs::SendOpcode;
  pair.wr_send = [](ibv_qp_ex* abi) { add(abi, {.opcode = SendOpcode::send}); };
  pair.wr_send_imm = [](ibv_qp_ex* abi, __be32 imm) { add(abi, {.opcode = SendOpcode::send_imm, .imm = imm}); };
  pair.wr_rdma_read = [](ibv_qp_ex* abi, std::uint32_t rkey, std::uint64_t address) {
    add(abi, {.opcode = SendOpcode::read, .rkey = rkey, .remote_addr = address});
  };
  pair.wr_rdma_write = [](ibv_qp_ex* abi, std::uint32_t rkey, std::uint64_t address) {
    add(abi, {.opcode = SendOpcode::write, .rkey = rkey, .remote_addr = address});
  };
  pair.wr_rdma_write_imm = [](ibv_qp_ex* abi, std::uint32_t rkey, std::uint64_t address, __be32 imm) {
    add(abi, {.opcode = SendOpcode::write_imm, .imm = imm, .rkey = rkey, .remote_addr = address});
  };
  pair.wr_atomic_cmp_swp = [](ibv_qp_ex* abi, std::uint32_t rkey, std::uint64_t address, std::uint64_t compare,
                              std::uint64_t swap) {
    add(abi, {.opcode = SendOpcode::compare_swap,
              .rkey = rkey,
              .remote_addr = address,
              .compare_add = compare,
              .swap = swap});
  };
  pair.wr_atomic_fetch_add = [](ibv_qp_ex* abi, std::uint32_t rkey, std::uint64_t address, std::uint64_t summand) {
    add(abi, {.opcode = SendOpcode::fetch_add, .rkey = rkey, .remote_addr = address, .compare_add = summand});
  };
  pair.wr_bind_mw = add_binding;
  pair.wr_local_inv = [](ibv_qp_ex* abi, std::uint32_t rkey) {
    add(abi, {.opcode = SendOpcode::invalidate, .rkey = rkey});
  };
  pair.wr_send_inv = [](ibv_qp_ex* abi, std::uint32_t rkey) {
    add(abi, {.opcode = SendOpcode::send_invalidate, .rkey = rkey});
  };
  pair.wr_send_tso = [](ibv_qp_ex* abi, void*, std::uint16_t, std::uint16_t) {
    spoil(abi, tell_absent(Absent::segmentation));
  };
  pair.wr_atomic_write = [](ibv_qp_ex* abi, std::uint32_t rkey, std::uint64_t address, const void* value) {
    add(abi, {.opcode = SendOpcode::atomic_write, .rkey = rkey, .remote_addr = address});
    if (value == nullptr) return spoil(abi, EINVAL);
    set_inline(abi, const_cast<void*>(value), sizeof(std::uint64_t));
  };
}

}  // namespace fairlead::ibverbs
