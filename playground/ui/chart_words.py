"""The words of the charts: titles with the direction that is better, axes, definitions, reasons for a gap."""

from __future__ import annotations

CHART_WORDS: dict[str, tuple[str, str]] = {
    "chart.ttft": ("Time to first token, s (lower is better)", "첫 토큰까지 시간, 초 (낮을수록 좋음)"),
    "chart.timeline": ("Tokens over time since each slot's own start (steeper is better)", "각 슬롯 시작부터 시간에 따른 토큰 (가파를수록 좋음)"),
    "chart.not_yet": ("Nothing has run yet", "아직 실행한 것이 없습니다"),
    "chart.decode": ("Decode speed, tokens/s (higher is better)", "디코드 속도, 토큰/초 (높을수록 좋음)"),
    "chart.memory": ("Memory, MB (lower is better)", "메모리, MB (낮을수록 좋음)"),
    "chart.memory_note": ("hatched: shared weights, counted once below", "빗금: 공유 가중치, 한 번만 셈"),
    "chart.acceptance": ("Draft acceptance, overall and by position (higher is better)", "초안 수락률, 전체와 위치별 (높을수록 좋음)"),
    "chart.quality": (
        "Quality against speed; dot area = weights (top right is better)",
        "품질과 속도; 점 넓이 = 가중치 (오른쪽 위가 좋음)",
    ),
    "chart.quality_x": ("decode tokens/s", "디코드 토큰/초"),
    "chart.quality_y": ("top-1 agreement", "1순위 일치율"),
    "chart.no_quality": (
        "Tick “Measure quality too” and compare to fill this chart",
        "‘품질도 측정’을 켜고 비교하면 채워집니다",
    ),
    "chart.rounds": ("Accepted drafts by round (higher is better)", "라운드별 수락된 초안 (높을수록 좋음)"),
    "chart.overall": ("overall", "전체"),
    "chart.no_speculation": ("No slot here has drafted yet", "아직 초안을 만든 슬롯이 없습니다"),
    "chart.working": ("Rest of the run's peak", "실행 중 나머지"),
    "chart.contended": ("race: contended", "경주: 간섭됨"),
    "missing.not_run": ("not run yet", "아직 실행 안 됨"),
    "missing.failed": ("the run failed", "실행 실패"),
    "missing.no_token": ("no token arrived", "토큰이 없음"),
    "missing.one_group": ("all tokens arrived at once, so there is no rate", "토큰이 한 번에 도착해 속도가 없음"),
    "missing.unmeasurable": ("not measurable here", "여기서는 잴 수 없음"),
    "chart.ladder": ("What each choice contributed, decode tokens/s (higher is better)", "선택마다 더한 속도, 디코드 토큰/초 (높을수록 좋음)"),
    "chart.no_ladder": (
        "No two slots that differ in one choice have fair numbers yet",
        "한 가지만 다르고 공정하게 잰 두 슬롯이 아직 없습니다",
    ),
    "chart.ladder_total": ("{0}× in all; “{1}×” is what guides promise", "모두 {0}배; 안내서들이 말하는 ‘{1}배’"),
    "chart.noise": (
        "grey: no measurable difference from the reference, which differs from itself by up to {0}",
        "회색: 기준과 구별되지 않는 범위(기준을 다시 재도 최대 {0} 다름)",
    ),
    "chart.ladder_start": ("start", "출발"),
    "chart.time": ("Where the time goes, s (shorter is better)", "시간이 쓰인 곳, 초 (짧을수록 좋음)"),
    "chart.sweep.all_tok_per_s": ("Decode tokens/s, all sequences (higher is better)", "디코드 토큰/초, 모든 글 합계 (높을수록 좋음)"),
    "chart.sweep.ttft_s": ("Time to first token (lower is better)", "첫 토큰까지 시간 (낮을수록 좋음)"),
    "chart.sweep.kv_bytes": ("KV cache (lower is better)", "KV 캐시 (낮을수록 좋음)"),
    "chart.sweep.acceptance_rate": ("Draft acceptance (higher is better)", "초안 수락률 (높을수록 좋음)"),
    "chart.gaps": ("Time between steps, ms (lower is better)", "스텝 사이 시간, ms (낮을수록 좋음)"),
    "chart.breakeven": ("Speed-up by chance of acceptance (above 1 is better)", "수락 확률에 따른 속도비 (1보다 클수록 좋음)"),
    "chart.breakeven_x": ("chance that a drafted id is accepted", "초안 토큰이 수락될 확률"),
    "chart.breakeven_hover": (
        "{0}: measured {1}, needed {2} at k = {3}; best k here: {4}",
        "{0}: 측정 {1}, 필요 {2} (k = {3}); 가장 좋은 k: {4}",
    ),
    "chart.breakeven_never": ("never", "불가능"),
    # what a chart shows, said on hover
    "define.timeline": (
        "New ids since t0, the moment when the inputs are on the device. Every slot starts at its own t0.",
        "입력이 장치에 오른 순간(t0)부터의 새 토큰 수. 슬롯마다 자기 t0에서 시작합니다.",
    ),
    "define.ttft": (
        "TTFT: from the inputs on the device to the first new id. Loading, waiting and warm-up are not in it.",
        "TTFT: 입력이 장치에 오른 뒤 첫 새 토큰까지. 불러오기, 대기, 준비 운동은 들어가지 않습니다.",
    ),
    "define.decode": (
        "Ids after the first group ÷ the time from the first group to the last.",
        "첫 묶음 뒤의 토큰 수 ÷ 첫 묶음에서 마지막 묶음까지의 시간.",
    ),
    "define.memory": (
        "Weights, drafter and KV cache: bytes of their tensors. The rest: the counter's peak over the run, less its reading "
        "with everything loaded, less the cache.",
        "가중치, 초안 모델, KV 캐시: 텐서의 바이트. 나머지: 실행 중 최댓값 − 모두 올린 뒤의 값 − 캐시.",
    ),
    "define.ladder": (
        "The longest chain of slots in which each changes one choice, from the reference on. A factor is the decode rate over that "
        "of the slot before.",
        "기준에서 시작해 한 번에 하나씩만 바꾼 슬롯들의 가장 긴 사슬. 배수는 바로 앞 슬롯과의 디코드 속도 비.",
    ),
    "define.time": (
        "The first forward, drafting, later forwards, turning ids into text, and what is left between them (host).",
        "첫 순전파, 초안, 이후 순전파, 글자 변환, 그 사이에 남는 시간(호스트).",
    ),
    "define.gaps": (
        "Time between the arrivals of two groups of ids: a step, or a round under speculation. Box: middle half; line: median; "
        "dots: more than 1.5 box widths outside.",
        "토큰 묶음이 도착한 간격: 한 스텝, 추측 디코딩에서는 한 라운드. 상자: 가운데 절반, 선: 중앙값, 점: 상자 너비의 1.5배보다 먼 값.",
    ),
    "define.acceptance": (
        "Accepted ÷ really drafted ids. By position p: rounds that accepted more than p ids ÷ rounds that drafted more than p.",
        "수락 ÷ 실제 초안 토큰. 위치 p: p개보다 많이 수락한 라운드 ÷ p개보다 많이 만든 라운드.",
    ),
    "define.rounds": (
        "How many drafted ids each step of the target accepted, in order.",
        "본 모델의 스텝마다 수락된 초안 토큰 수, 순서대로.",
    ),
    "define.breakeven": (
        "Expected speed-up if every drafted id had the same chance, from the measured times of a round and of a plain step. The dot is "
        "what was measured.",
        "초안 토큰의 수락 확률이 모두 같다면 기대되는 속도비. 라운드와 보통 스텝의 측정 시간에서 계산. 점은 측정값.",
    ),
    "define.quality": (
        "Top-1 agreement: share of the positions of the reference's answer where both find the same id most likely.",
        "1순위 일치율: 기준 답변의 위치 중 둘이 같은 토큰을 가장 유력하게 본 비율.",
    ),
    "define.sweep": (
        "Line: median of the runs at each value. Band: the median absolute deviation on either side.",
        "선: 값마다 잰 실행의 중앙값. 띠: 양쪽의 중앙값 절대 편차.",
    ),
}
