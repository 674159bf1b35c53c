-- Queries that lakelite and plain DuckDB answer alike; one a line, run by test_language.py.
select * from flights
select count(*) from flights
select count(*), sum(delay), avg(distance), min(day), max(carrier) from flights
select *, id + 1 as next from flights where delay > 20 order by id
select f.id, c.name from flights f join carriers c on f.carrier = c.code where f.id < 50 order by f.id
select * from flights f left join carriers c on carrier = code where delay is null
select * from carriers right join flights on code = carrier where id > 2400
select * from flights full join carriers on carrier = code where id is null or id < 10
select a.id, b.id from flights a, flights b where a.id = b.id + 1 and a.id < 9 order by all
select * from flights semi join carriers on carrier = code where id < 20
select * from flights anti join carriers on carrier = code where id < 20
select * from flights natural join s.flights
select * from flights join s.flights using (id)
select * from carriers positional join s.flights
select f.id, c.name from flights f asof join carriers c on f.distance >= c.since order by f.id
select * from carriers cross join s.flights
select id, (select name from carriers where code = carrier) as name from flights where id < 8 order by id
select id from flights where carrier in (select code from carriers where since < 1930) and id < 30 order by id
select id from flights f where exists (select 1 from s.flights x where x.id = f.id) order by id
select id, delay > all (select since from carriers where since is not null) as late from flights where id < 5 order by id
select c.code, l.id from carriers c, lateral (select id from flights where carrier = c.code order by id limit 2) l order by all
select id, sum(delay) over (partition by carrier order by id rows between 2 preceding and current row) as s from flights where id < 40 order by id
select id, row_number() over w as n, lag(delay, 1, 0) over w as l from flights where id < 40 window w as (partition by carrier order by id) order by id
select id, carrier from flights qualify row_number() over (partition by carrier order by id desc) = 1 order by id
select carrier, count(*) as n, count(delay) filter (delay > 0) as late from flights group by carrier having n > 10 order by all
select carrier, day, count(*) from flights where id < 100 group by all order by all
select carrier, day, count(*) from flights where id < 40 group by grouping sets ((carrier), (day), ()) order by all
select carrier, count(*) from flights group by rollup (carrier) order by all
select distinct carrier from flights order by all
select distinct on (carrier) carrier, id from flights order by carrier, id
select id from flights where id < 5 union all select id from s.flights order by 1
select id from flights where id < 5 union select id from s.flights order by 1
select id from flights intersect select id from s.flights order by 1
select id from s.flights except all select id from flights order by 1
select id, note as x from s.flights union all by name select id, carrier as y from flights where id < 3 order by all
from flights where id < 3 order by id
from flights select id, delay where id < 3 order by id
select columns('d.*') from flights where id < 5 order by id
select min(columns(*)) from flights
select * exclude (day, distance) replace (delay + 1 as delay) rename (carrier as c) from flights where id < 5 order by id
select flights.* from flights where id < 3 order by id
select f from flights f where f.id = 4
pivot flights on carrier using sum(delay) group by day order by day
from flights pivot (count(*) for carrier in ('AA', 'UA') group by delay) order by delay
unpivot (select id, delay, distance from flights where id < 4) on delay, distance into name what value v order by all
unpivot carriers on name into name k value v order by all
summarize carriers
describe flights
describe select id + 1 as next, day from flights
show flights
values (1, 'a'), (2, 'b') order by 1
table carriers order by code
with x as (select id from flights where id < 5) select * from x order by 1
with flights as (select 7 as id) select * from flights
with flights as (select 7 as id) select * from flights, main.flights as m where m.id < 2 order by all
with flights as (select id from main.flights where id < 3) select * from flights order by all
with recursive r(n) as (select 1 union all select n + 1 from r where n < 5) select r.n, f.delay from r join flights f on f.id = r.n order by n
with a as materialized (select id from flights), b as (select id from a where id < 3) select * from b order by 1
select list(id order by id) as ids, [x * 2 for x in list(id order by id) if x > 2] as twice from flights where id < 6
select list_transform(list(id order by id), lambda x: x + 1) as up, {'a': min(id), 'b': max(day)} as st, map {'k': count(*)} as m from flights
select unnest([id, id * 10]) as u from flights where id < 3 order by all
select struct_pack(id, carrier) as p, struct_pack(id, carrier).id as i from flights where id < 3 order by id
select id from flights using sample 100%
select count(*) from flights tablesample 100%
select main.flights.id, "flights"."delay" from "main"."flights" where "id" = 4
select "Carrier", FLIGHTS.ID from FLIGHTS where Id = 4
select s.flights.note from s.flights where s.flights.id = 1
select f.id as "a b", f.delay as "select" from flights as f where f.id = 4
select case when delay > 10 then 'late' when delay is null then 'unknown' else 'fine' end as k, count(*) as n from flights group by k order by k
select day + interval 1 month as m, extract(year from day) as y, strftime(day, '%a') as w from flights where id = 4
select carrier || '-' || id as t, carrier like 'A%' as l, carrier similar to '[AU]A' as r from flights where id < 5 order by id
select id from flights order by delay desc nulls last, id limit 5 offset 3
select id from flights order by id limit 1%
select id from flights where day between '2013-01-05' and '2013-01-07' and delay in (1, 2, 3) order by id
select id from flights where id is distinct from 4 and id < 6 order by id
select max(id) - (select min(id) from flights) as d from flights
select arg_max(id, distance) as m, string_agg(carrier, ',' order by id) as s, median(delay), approx_count_distinct(carrier) from flights where id < 30
select * from (values (1, 'AA'), (2, 'UA')) v(n, code) join carriers using (code) order by n
select * from range(3) r(i) join flights on id = i order by i
select count(*) from flights, carriers where code = carrier
select id // 7 as a, id % 7 as b, -id as c, id ** 2 as d, id / 4 as e, id::varchar as f, try_cast(carrier as integer) as g from flights where id < 5 order by id
select 1 as x -- a comment
select /* flights */ 'from nowhere' as x
select count(*) from (select * from flights limit 10)
select t.x.id from (select f as x from flights f where id = 4) t
select coalesce(name, 'none') as n, ifnull(since, 0) as s, nullif(code, 'ZZ') as c from carriers order by all
select id, delay from flights where (carrier, delay) in (select code, 7 from carriers) order by id
select any_value(carrier) as c, bool_and(id > 0) as b, histogram(delay % 3) as h from flights where carrier = 'AA'
select * from flights where id = 2501 or (id = 2500 and delay is null) order by id
select x.id from flights as x(id, c, d, e, f) where c = 'DL' and x.id < 20 order by id
select a: id, b: delay from flights where id = 4
select id from query_table('flights') where id = 4
select count(*) from query('select * from s.flights')
