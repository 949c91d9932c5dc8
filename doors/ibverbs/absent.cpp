// Verbs that this device does not support. Each answers as a device without the feature does (docs/ibverbs.md).
#include "doors/ibverbs/absent.hpp"

#include <fmt/format.h>

#include <array>
#include <atomic>
#include <exception>
#include <type_traits>
#include <utility>

#include "base/log.hpp"
#include "doors/ibverbs/objects.hpp"

namespace fairlead::ibverbs {
namespace {

struct Row {
  std::string_view feature, instead;
};

// In the order of Absent.
constexpr std::array kRows{
    Row{"flow steering (ibv_create_flow)", "receive on queue pairs, which need no rules"},
    Row{"work queues and RSS (ibv_create_wq)", "use a shared receive queue"},
    Row{"tag matching (IBV_SRQT_TM)", "match tags in the program"},
    Row{"segmentation offload (ibv_wr_send_tso)", "send each datagram by itself"},
    Row{"counters (ibv_create_counters)", "`fairlead top` shows the counters of a running program"},
    Row{"packet pacing (ibv_modify_qp_rate_limit)", "the link adapts to the network by itself"},
    Row{"moderation of completion events (ibv_modify_cq)", "take several completions per event"},
    Row{"memory of other devices (ibv_reg_dmabuf_mr)", "register host memory and copy"},
    Row{"raw packet queue pairs (IBV_QPT_RAW_PACKET)", "use UD queue pairs"},
    Row{"a device of another process (ibv_import_device)", "open the device in each process"},
    Row{"an XRC domain that this process has not created (ibv_open_xrcd without O_CREAT)",
        "each process has its own engine, and a target has to be in the engine of its shared receive queues. Create "
        "them all in one process"},
    Row{"FLUSH (IBV_WR_FLUSH, IBV_ACCESS_FLUSH_*)",
        "data is visible to the peer's processors when the write or a read behind it has completed"},
    Row{"management datagrams (/dev/infiniband/umad*)",
        "use the files in /sys/class/infiniband; no subnet manager is needed"},
    Row{"queue pairs of a vendor's type (IBV_QPT_DRIVER)", "use RC, UC, UD or XRC"},
    Row{"creation flags of queue pairs (ibv_qp_init_attr_ex.create_flags)", "create them without flags"},
    Row{"attributes of queue pairs besides PD, XRCD, CREATE_FLAGS and SEND_OPS_FLAGS (ibv_create_qp_ex)",
        "leave their bits in comp_mask clear"},
    Row{"posting calls that a queue pair of its type lacks (ibv_qp_init_attr_ex.send_ops_flags)",
        "UD sends, UC also writes, RC also reads and has atomics; XRC has no windows"},
    Row{"path migration (IBV_QP_ALT_PATH, IBV_MIG_REARM)",
        "the attributes are only stored. The host's routes choose the interface, so let them or a bonded interface "
        "replace a path that fails"},
};
static_assert(kRows.size() == std::to_underlying(Absent::path_migration) + 1);

template <Absent feature, typename Result, typename... Arguments>
Result refuse_call(Arguments...) {
  const int error = tell_absent(feature);
  if constexpr (std::is_pointer_v<Result>) {
    return nullptr;
  } else {
    return error;
  }
}

template <Absent feature, typename Result, typename... Arguments>
void set_absent(Result (*&operation)(Arguments...)) {
  operation = refuse_call<feature, Result, Arguments...>;
}

}  // namespace

void note_absent(Absent feature) noexcept {
  static constinit std::array<std::atomic<bool>, kRows.size()> is_told{};
  const auto place = static_cast<std::size_t>(std::to_underlying(feature));
  if (!is_told[place].exchange(true)) try {
      const Row& row = kRows[place];
      base::log(LogLevel::warning, LogTopic::verbs, {},
                fmt::format("the program asks for {}, which this device lacks: {}", row.feature, row.instead));
    } catch (const std::exception&) {  // the program gets the error anyway
    }
}

int tell_absent(Absent feature) noexcept {
  note_absent(feature);
  return fail(EOPNOTSUPP);
}

void set_absent_operations(verbs_context& context) {
  set_absent<Absent::flow_steering>(context.ibv_create_flow);
  set_absent<Absent::flow_steering>(context.create_flow_action_esp);
  set_absent<Absent::work_queues>(context.create_wq);
  set_absent<Absent::work_queues>(context.create_rwq_ind_table);
  set_absent<Absent::tag_matching>(context.post_srq_ops);
  set_absent<Absent::counters>(context.create_counters);
  set_absent<Absent::packet_pacing>(context.modify_qp_rate_limit);
}

}  // namespace fairlead::ibverbs

using namespace fairlead::ibverbs;

extern "C" {

// No memory is pinned, so nothing must be protected from forked children.
int ibv_fork_init() {
  return 0;
}
ibv_fork_status ibv_is_fork_initialized() {
  return IBV_FORK_UNNEEDED;
}
int ibv_dontfork_range(void* base, size_t size);
int ibv_dontfork_range(void*, size_t) {
  return 0;
}
int ibv_dofork_range(void* base, size_t size);
int ibv_dofork_range(void*, size_t) {
  return 0;
}

int ibv_query_ece(ibv_qp*, ibv_ece* ece) {
  if (ece != nullptr) *ece = {};
  return fail(EOPNOTSUPP);
}
int ibv_set_ece(ibv_qp*, ibv_ece* ece) {
  if (ece != nullptr && ece->vendor_id == 0) return 0;  // "no options", by convention
  return fail(EOPNOTSUPP);
}
}
