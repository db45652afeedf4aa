//! Connections to an engine that speaks SQL, with their statements prepared.

use std::sync::Arc;

use engine::{Error, ParamType, RangeScan, Session, SqlEngine, Statement};

use super::choices::{KeyMin, Oldest, PointChoices, RangeChoices};
use super::connection::{Connection, Deleter, Holder, Indexer, Inserter, PointReader, RangeReader};
use super::pace::Turns;
use super::rows::{Feed, ROW_PARAMS};
use super::schema::{POINT_COLUMNS, POINT_KEYS, RANGE_LIMIT, RangeQuery};
use super::{Insert, Part, Programs, StepKind};
use crate::Program;

/// Makes programs that run statements.
pub(super) struct Statements<'a, E> {
    pub(super) insert: &'a Insert,
    pub(super) engine: &'a E,
}

impl<E: SqlEngine> Statements<'_, E> {
    fn make_inserter(
        &self,
        part: Part<'_>,
        feed: Feed,
        turns: Turns,
    ) -> Result<Inserter<E::Session>, Error> {
        let rows = feed.rows_per_commit();
        let mut session = self.engine.connect()?;
        let params: Vec<ParamType> = (0..rows).flat_map(|_| ROW_PARAMS).collect();
        let sql = self
            .engine
            .dialect()
            .insert(&self.insert.tables[part.table], rows);
        let statement = session.prepare(&sql, &params)?;
        Ok(Inserter {
            session,
            table: self.insert.tables[part.table].clone(),
            statement,
            feed,
            turns,
            is_bulk_load: false,
            last_statements: &[],
            is_ending: false,
        })
    }
}

impl<E: SqlEngine> Programs for Statements<'_, E> {
    fn inserter(
        &mut self,
        part: Part<'_>,
        feed: Feed,
        turns: Turns,
    ) -> Result<Box<dyn Program>, Error> {
        let mut inserter = self.make_inserter(part, feed, turns)?;
        if matches!(part.step.kind, StepKind::Load { .. })
            && let Some(bulk) = self.insert.bulk_load(self.engine.dialect())
        {
            inserter.begin_bulk_load(bulk)?;
        }
        Ok(Box::new(Connection::Inserter(inserter)))
    }

    fn indexer(
        &mut self,
        part: Part<'_>,
        feed: Feed,
        turns: Turns,
        creates: bool,
    ) -> Result<Box<dyn Program>, Error> {
        let inserter = self.make_inserter(part, feed, turns)?;
        let table = &self.insert.tables[part.table];
        let index_statements = self.insert.options.index_statements;
        let statements = match creates {
            true => self
                .engine
                .dialect()
                .create_indexes(table, index_statements),
            false => Vec::new(),
        };
        Ok(Box::new(Connection::Indexer(Indexer {
            inserter,
            statements,
            next: 0,
            creating: false,
        })))
    }

    fn deleter(
        &mut self,
        part: Part<'_>,
        turns: Turns,
        published: &Arc<KeyMin>,
    ) -> Result<Box<dyn Program>, Error> {
        let table = &self.insert.tables[part.table];
        let rows_per_commit = part.step.kind.rows_per_commit();
        let dialect = self.engine.dialect();
        let mut session = self.engine.connect()?;
        let shared = self.insert.options.shared_table;
        let delete = dialect.delete_oldest(table, rows_per_commit, shared);
        let statement = session.prepare(&delete, &[ParamType::Int8])?;
        let get_min = session.prepare(&dialect.min_key(table), &[])?;
        Ok(Box::new(Connection::Deleter(Deleter {
            session,
            statement,
            get_min,
            rows_per_commit,
            turns,
            oldest: Oldest::new(published),
            is_shared: shared,
            has_failed: false,
        })))
    }

    fn range_reader(
        &mut self,
        part: Part<'_>,
        choices: RangeChoices,
    ) -> Result<Box<dyn Program>, Error> {
        let table = &self.insert.tables[part.table];
        let mut session = self.engine.connect()?;
        let mut prepare = |query: RangeQuery| -> Result<Statement, Error> {
            let scan = RangeScan {
                index: &table.indexes[query.index],
                comparison: query.comparison,
                limit: RANGE_LIMIT,
            };
            let sql = self.engine.dialect().range_scan(table, scan);
            session.prepare(&sql, &[ParamType::Int4])
        };
        let [market, register, pdc] = self.insert.options.indexes.range_queries();
        let statements = [prepare(market)?, prepare(register)?, prepare(pdc)?];
        Ok(Box::new(Connection::RangeReader(RangeReader {
            session,
            statements,
            choices,
        })))
    }

    fn point_reader(
        &mut self,
        part: Part<'_>,
        mut choices: PointChoices,
    ) -> Result<Box<dyn Program>, Error> {
        let table = &self.insert.tables[part.table];
        let dialect = self.engine.dialect();
        let mut session = self.engine.connect()?;
        let params = [ParamType::Int8; POINT_KEYS as usize];
        let lookup = dialect.point_lookup(table, &POINT_COLUMNS, POINT_KEYS);
        let statement = session.prepare(&lookup, &params)?;
        let get_max = session.prepare(&dialect.max_key(table), &[])?;
        choices.start(session.query_i64(&dialect.min_key(table))?.unwrap_or(0));
        Ok(Box::new(Connection::PointReader(PointReader {
            session,
            statement,
            get_max,
            choices,
        })))
    }

    fn holder(&mut self, part: Part<'_>) -> Result<Option<Box<dyn Program>>, Error> {
        let dialect = self.engine.dialect();
        Ok(Some(Box::new(Connection::Holder(Holder {
            session: self.engine.connect()?,
            begin: dialect.begin(),
            commit: dialect.commit(),
            read: dialect.min_key(&self.insert.tables[part.table]),
            open: false,
        }))))
    }
}
